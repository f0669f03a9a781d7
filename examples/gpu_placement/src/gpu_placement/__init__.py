"""Language models on shared GPUs (Prism): which GPU serves which, so that none is short of memory for its caches.

**Given** GPUs of ``M`` GB and language models j with weights of ``s[j]`` GB and a demand ``d[j]``, the rate of requests
over the latency that is promised (r/SLO), in units of 1/2520. What is free on a GPU behind the weights of its models
holds their key-value caches. Its *pressure* is the demand of its models per free GB:

    pressure of GPU i = ceil(100 * sum d[j] / (M - sum s[j]))    over the models j on it, in 1/252,000 per GB

**Decide** the GPU of every model. **Minimise** the largest pressure of a GPU. At least 1 GB stays free, and no pressure
is above the limit ``tau``. Pairs of models may have to be apart (two tenants) or together (one and its adapter).

Source: Yu et al., "Prism: Unleashing GPU Sharing for Cost-Efficient Multi-LLM Serving", arXiv:2505.04021, as the
benchmark ADRS/prism of SkyDiscover (github.com/skydiscover-ai/skydiscover at 59643ef8, Apache-2.0) states it: there M
is 80 GB and the pressure is called KVPR. The problem is NP-hard: for a fixed pressure it is bin packing.

Interpretation
--------------
The benchmark gives a full GPU the pressure 1,000,000; here a GPU is never full. No best plan has a full GPU where
another plan exists.
"""

from gpu_placement.evaluate import describe, diagnose, evaluate
from gpu_placement.instance import Instance, Plan
from mapgap.core import Method, Problem

PROBLEM = Problem(
    name="gpu_placement",
    title="Language models on shared GPUs",
    paper="Prism (Yu et al.)",
    sense="min",
    unit=lambda instance: "1/252,000 requests per SLO and GB",
    instance_type=Instance,
    plan_type=Plan,
    evaluate=evaluate,
    describe=describe,
    diagnose=diagnose,
    library="gpu_placement.instances:LIBRARY",
)

METHODS = [
    Method(
        "packing",
        "gpu_placement",
        kind="exact",
        reference="bisection over the pressure; bin completion",
        run="gpu_placement.packing:run",
        summary="for a fixed pressure the GPUs are bins",
        rank=2,
        engines=("own",),
    ),
    Method(
        "cpsat",
        "gpu_placement",
        kind="exact",
        reference="assignment model, CP-SAT",
        run="gpu_placement.cpsat:run",
        summary="one Boolean per GPU and model",
        rank=1,
        engines=("CP-SAT",),
        models="gpu_placement.cpsat:models",
    ),
    Method(
        "mip",
        "gpu_placement",
        kind="exact",
        reference="assignment model, HiGHS",
        run="gpu_placement.mip:run",
        summary="one binary per GPU and model",
        engines=("HiGHS",),
        models="gpu_placement.mip:models",
    ),
    Method(
        "enumerate",
        "gpu_placement",
        kind="exact",
        reference="brute force",
        run="gpu_placement.enumerate:run",
        summary="every plan of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    Method(
        "area_bound",
        "gpu_placement",
        kind="bound",
        reference="all demand over all free memory; one model alone",
        run="gpu_placement.area_bound:run",
        summary="two fractions; no solver",
    ),
    Method(
        "prism",
        "gpu_placement",
        kind="published",
        reference="Yu et al., Prism, Algorithm 1 as in SkyDiscover's ADRS benchmark",
        run="gpu_placement.prism:run",
        summary="largest demand first, where the pressure is least",
    ),
    Method(
        "first_fit",
        "gpu_placement",
        kind="baseline",
        reference="the naive program of SkyDiscover's ADRS benchmark",
        run="gpu_placement.first_fit:run",
        summary="every model on the first GPU that has room",
    ),
]
