"""What twinnet.gym uses of gymnasium, for pyright: static checks need no optional package."""

from typing import Any, Generic, TypeVar

import numpy as np

from gymnasium import spaces as spaces

_Observation = TypeVar("_Observation")
_Action = TypeVar("_Action")

class Env(Generic[_Observation, _Action]):
    metadata: dict[str, Any]
    observation_space: spaces.Space[_Observation]
    action_space: spaces.Space[_Action]
    @property
    def np_random(self) -> np.random.Generator: ...
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Observation, dict[str, Any]]: ...
    def step(self, action: _Action) -> tuple[_Observation, float, bool, bool, dict[str, Any]]: ...
    def close(self) -> None: ...
