"""The embedded quality estimator: features of a frozen encoder, and a small trained head shipped with the package."""
