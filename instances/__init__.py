"""Networks, devices and instance files, and the Python that loads, expands and generates them.

Called, ``mapgap.instances()`` names the instances of the library.
"""

import sys

from mapgap.core import CallablePackage

sys.modules[__name__].__class__ = CallablePackage
