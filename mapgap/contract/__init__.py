"""The contract: what every problem and every method keeps, as tests over the registry.

They run over whatever is installed, so nothing can be forgotten: the problems of the house and those that other
packages announce::

    pytest --pyargs mapgap.contract                        # everything
    pytest --pyargs mapgap.contract -k gpu_placement  # one problem

A problem needs two things: the random family ``tiny``, and an exact method ``enumerate`` that tries every plan of such
an instance and judges it by the evaluator. That is the oracle of all else. What a problem or its library declares
besides (models, case splits, smaller instances, random plans, relations, charts, ...) is tested; what it leaves out is
skipped with a reason.

==============================  ================================================================================
module                          holds every problem to
==============================  ================================================================================
:mod:`~.test_contract`          plans feasible, bounds valid, exact methods exact, round trips, determinism
:mod:`~.test_cross_check`       exact methods agree, from a file through loading, solving and checking of claims
:mod:`~.test_library`           files load, families are reproducible, cases cover, smaller instances are smaller
:mod:`~.test_models`            numbered rows, one point per plan, no row too many or too few, written files
:mod:`~.test_mutations`         altered certificates prove nothing that is not so
:mod:`~.test_implications`      bounds and plans that pass from one instance to another
:mod:`~.test_relations`         optima that follow from each other
:mod:`~.test_equal_time`        in equal time no exact method loses to a heuristic
==============================  ================================================================================

Random instances are few, and more with ``-m nightly``; ``MAPGAP_SCALE`` multiplies them (:mod:`~.seeds`).
"""
