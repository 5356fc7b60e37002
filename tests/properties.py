"""Settings of property tests: reproducible examples without a database."""

from hypothesis import HealthCheck, settings

checked = settings(
    max_examples=50,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
