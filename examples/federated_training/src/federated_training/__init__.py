"""Federated learning that really trains, on a simulated clock: does a better mask train better?

``network`` is a small convolutional network in NumPy that trains any subset of its neurons, ``data`` splits
scikit-learn's digits among devices, ``schemes`` runs the schemes of ELFISH. The study ``neuron_masking`` makes
a training a run that it records and resumes, and finds this package installed or in its checkout.
"""

from federated_training.schemes import measure as measure
