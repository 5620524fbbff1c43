"""A scripted talk with an agent that finds out what it can do: `pilothouse doctor agent NAME`.

`script.py` has what it is told, `client.py` the client that it speaks with and `consent.py` what that grants, `talk.py`
its process and session, `steps.py` what is tried, `probe.py` does it in order, `rows.py` is what was found out,
`masking.py` keeps secrets out of that, `memory.py` is what is remembered. The rule a change must not break: a flag on
the card, and a step that says yes, were seen; what an agent only says of itself stands apart.
"""
