"""The pictures of the documentation: `python -m tests.support.pictures` makes all of them anew, as `make screenshots`.

    stories.py   what the agents in the pictures do: scripts for the scripted agent
    projects.py  the files they work on
    elsewhere.py what agents keep that were started in terminals
    stage.py     a hub with sessions in every state, by a clock of its own
    mirror.py    what the browser is shown instead of the paths and codes of this machine
    album.py     the views, and how each one is reached
    shrink.py    a palette for each picture, so that all of them are small

Nothing of the machine that they are made on may be seen in them, and two runs should differ in little.
"""
