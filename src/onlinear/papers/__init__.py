"""Not public: the experiments of the five papers as data (TOML), and the code that reads, runs, judges and draws them.

experiments  TOML -> frozen dataclasses           expressions  formulas in TOML, without running code
data         rows by name, or generated           problems     data + loss + penalty, and their optimum
measuring    what a measure is                    measures     those of a moment
theorems     those of every row or iteration      runs         one run
study        many runs as series                  store        finished runs, kept by digest
claims       verdicts from numbers                figures, report   curves, tables, the page
"""
