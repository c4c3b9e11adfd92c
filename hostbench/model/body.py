"""Base of the bodies of requests and answers."""

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from hostbench.model.events import ParamValue


class BodyModel(BaseModel):
    """Exact types, nothing unknown, finite numbers only. Requests are validated as JSON
    (hostbench.web.body.json_body): strict validation of decoded JSON would refuse every list that
    stands for a tuple."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        validate_by_alias=True,
        validate_by_name=True,
    )


def _number_or_word(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """One error for the field, not one for each type that it might have been."""
    try:
        return validate(value)
    except ValidationError:
        raise PydanticCustomError("param_value", "give a number or a word") from None


RequestParam = Annotated[ParamValue, WrapValidator(_number_or_word)]
