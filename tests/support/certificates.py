"""What the tests of certificates share: asking the checker, and damaging proofs and instances."""

from mapgap.contract import mutations

damaged = mutations.damaged


def accepted(instance, bound, proof):
    """Does the checker believe that no plan is better than the bound?"""
    return mutations.accepted({"schema": 1, "instance": instance, "bound": bound, "proof": proof})
