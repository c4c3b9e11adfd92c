"""Base of the bodies of requests and answers."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError, PydanticOmit

from hostbench.model.events import ParamValue, ProtocolModel


class BodyModel(ProtocolModel):
    """As strict as what a program reports.

    Requests are validated as JSON (hostbench.web.body.json_body): strict validation of decoded JSON
    would refuse every list that stands for a tuple.
    """


# At most this many errors of one body are reported.
ERRORS_LISTED = 20


@dataclass
class ErrorsSoFar:
    """The context of the validation of one body; without it, a million errors would take a
    gigabyte."""

    count: int = 0


def _while_errors_are_few(
    value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo
) -> Any:
    """Leave out the values after ERRORS_LISTED errors: the body is refused anyway."""
    so_far = info.context
    if not isinstance(so_far, ErrorsSoFar):
        return validate(value)
    if so_far.count >= ERRORS_LISTED:
        raise PydanticOmit
    before = so_far.count
    try:
        return validate(value)
    except ValidationError:
        # An error inside the value has been counted there.
        so_far.count = max(so_far.count, before + 1)
        raise


# Added to the type of values that a body may have many of.
WHILE_ERRORS_ARE_FEW = WrapValidator(_while_errors_are_few)


def _number_or_word(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Report one error for the field instead of one for each type that it may have."""
    try:
        return validate(value)
    except ValidationError:
        raise PydanticCustomError("param_value", "give a number or a word") from None


RequestParam = Annotated[ParamValue, WrapValidator(_number_or_word)]
