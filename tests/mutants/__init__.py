"""`make mutants`: the code changed in one place after the other, to see which changes no test notices."""
