"""The languages that are read by lists of words: which one a text is in, and what in it is about its speaker's life.

Data are one file a language. To add one, add its file; one with spaces between its words is known by `[function]`.
"""
