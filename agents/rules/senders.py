"""Who wrote a mail: the address in a From line, and whether a machine stands behind it."""

import re

#: An address where it stands in a line; every quantifier is bounded, so that no text is slow to read.
ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,5}[a-zA-Z]{2,24}(?![\w@-])", re.ASCII)

#: Local parts that nobody reads.
_MACHINES = re.compile(r"(?:mailer-daemon|postmaster|bounces?|no-?reply|do-?not-?reply|autoreply|daemon|root)\b")

#: Characters of a From line that are looked at.
_LONGEST = 1000


def address_of(sender: str) -> str:
    """The last e-mail address in a From line, in lower case; "" when there is none.

    >>> address_of('"A customer, at home" <Customer.One@Example.com>')
    'customer.one@example.com'
    >>> address_of("undisclosed")
    ''
    """
    found = ADDRESS.findall(sender[:_LONGEST])
    return found[-1].lower() if found else ""


def is_machine(address: str) -> bool:
    """Whether an answer to `address` reaches a machine.

    >>> is_machine("no-reply@example.com"), is_machine("norma@example.com")
    (True, False)
    """
    return bool(_MACHINES.match(address))
