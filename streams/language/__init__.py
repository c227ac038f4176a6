"""Language: pure functions that read a text: its language, its requests, and its worth for memory.

English and Chinese have modules of their own. Every other language has a file with word lists in `languages/`. A
language in Latin letters is recognised by the function words in the section `[function]` of its file.
"""
