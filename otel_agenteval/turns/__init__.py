"""Turns: which spans make one (:mod:`.roots`), when it is over (:mod:`.assembler`), what it says (:mod:`.build`)."""
