"""The address of Redis. The module imports no Redis client, so that `orchestrator.influx.reindex`
works without one."""

from typing import Annotated

from pydantic import SecretStr

from hostbench.base.config import EnvironmentSettings, UsedWith, url_of

RedisUrl = Annotated[str, url_of("redis", "rediss", "unix")]


class RedisSettings(EnvironmentSettings):
    """The Redis of the stack."""

    redis_url: RedisUrl | None = None
    redis_password: Annotated[SecretStr | None, UsedWith("redis_url")] = None
