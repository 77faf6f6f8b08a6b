"""Evaluate open-domain dialogue in many languages.

The verbs of the command line are functions of ``mdialeval.api``::

    from mdialeval import api
    outcome = api.run("configs/quickstart.yaml")

They are not repeated here, since ``mdialeval.rank`` or ``mdialeval.train`` name the packages behind the verbs.
"""

__version__ = "0.1.0"
