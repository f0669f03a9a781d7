"""The specification of each mapping problem: instance, plan, evaluator. One folder or file per problem.

Called, ``mapgap.problems()`` lists them.
"""

import sys

from mapgap.core import CallablePackage

sys.modules[__name__].__class__ = CallablePackage
