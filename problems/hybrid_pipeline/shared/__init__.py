"""What exact methods and heuristics of hybrid pipelines share and the specification does not know.

It may change how a method is run or what is noted beside its plan, never what a plan is worth.
"""
