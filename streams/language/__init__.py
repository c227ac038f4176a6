"""Language: pure functions that read a text.

A language that is read by word lists is one file in `languages/`. To add one, add its file. A language with spaces
between its words is recognised by its section `[function]`.
"""
