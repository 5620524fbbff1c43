"""Sessions in a terminal: events drawn as they come, questions asked in place.

screen.py draws events, speech.py what is said; printing.py prints, drawing.py holds how single things look, texts.py
makes foreign text harmless; keyboard.py reads, asking.py and forms.py put approvals and questions to a person. Nothing
here knows where events come from.
"""
