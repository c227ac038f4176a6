"""What words say: pure functions of a text.

A language that is read by lists of words is one file in `languages/`. To add one, add its file. A language with
spaces between its words is recognised by its section `[function]`.
"""
