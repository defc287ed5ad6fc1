"""Real media: images, sounds and videos of a turn, opened under rules, stripped of what they say about people, and measured.

Nothing here runs on an agent's thread, and nothing is kept: a metric opens what it needs, and lets go of it with its score.

May import: core, and on first use httpx, Pillow, PyAV, webrtcvad, fsspec and numpy. Start at :mod:`.access`, which decides what may be opened.
"""
