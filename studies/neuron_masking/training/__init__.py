"""Federated learning that really trains, on a simulated clock: does a better mask train better?

``network`` is a small convolutional network in NumPy that trains any subset of its neurons, ``data`` splits
scikit-learn's digits (extra ``training``) among devices, ``federated`` runs the schemes of ELFISH, ``job`` makes a
training a run that sweeps and studies record and resume.
"""
