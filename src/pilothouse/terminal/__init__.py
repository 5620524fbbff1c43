"""Sessions in a terminal: events drawn as they come, questions asked in place.

screen.py draws events, speech.py messages and calls.py tool calls; drawing.py renders single values, printing.py prints
lines and the live region; keyboard.py reads lines, asking.py asks for decisions. Nothing here knows where events come
from.
"""
