"""A scripted talk with an agent that finds out what it can do: `pilothouse doctor agent NAME`.

`steps.py` has the steps, `probe.py` runs them in order, `talk.py` holds the agent's process and session, `client.py` is
the client that answers its requests, `report.py` holds the results, without secrets, and stores the last one.
The rule a change must not break: a flag on the card, and a step that says yes, were seen; what an agent only declares
is listed separately.
"""
