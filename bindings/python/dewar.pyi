"""Access decisions about a program's own objects, by a policy in the language of SELinux and without its kernel."""

import os
from typing import Any, Callable, Optional, Sequence, Union, final

__version__: str

class Denied(PermissionError):
    """The policy, or the lack of an answer, denies it."""

    scontext: str
    tcontext: str
    tclass: str
    missing: list[str]
    answered: bool
    """Whether the security server has answered; if not, everything is denied."""

class PolicyError(ValueError):
    """A policy, a class, a context or a name that cannot be used: the message says where."""

class DaemonError(ConnectionError):
    """`dewar daemon` does not answer, or says no."""

@final
class Policy:
    """A policy as it is written; it is read when an Avc takes it."""

    @staticmethod
    def from_files(*paths: Union[str, os.PathLike[str]]) -> Policy:
        """Files in CIL, or one binary policy."""
    @staticmethod
    def from_text(text: str, name: str = "policy.cil") -> Policy: ...

@final
class Context:
    """The label of a subject or an object, with the place of its last answer: keep one for each object."""

    @property
    def type(self) -> str: ...
    @property
    def sid(self) -> int: ...
    def __str__(self) -> str: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Peer:
    """The process that has connected a unix socket."""

    @property
    def pid(self) -> int: ...
    @property
    def uid(self) -> int: ...
    @property
    def context(self) -> Optional[str]:
        """What its `dewar run` vouches for; None outside of every sandbox."""
    @property
    def is_current(self) -> bool:
        """False when it may have entered another domain since: ask again."""

@final
class Avc:
    """A policy, the program's classes, and a cache. Every method may be called by every thread."""

    def __init__(
        self,
        policy: Policy,
        *,
        classes: Optional[dict[str, Sequence[str]]] = None,
        name: str = "python",
        daemon: Optional[bool] = False,
        entries: Optional[int] = None,
        permissive: bool = False,
        audit: Optional[Callable[[dict[str, Any]], object]] = None,
        on_change: Optional[Callable[[int], object]] = None,
    ) -> None:
        """`daemon`: True for `dewar daemon`'s decisions or none, None for its if one answers."""
    def context(self, context: str) -> Context: ...
    def check(
        self,
        subject: Context,
        object: Context,
        tclass: str,
        permissions: Union[str, Sequence[str]],
        *,
        about: str = "",
        operation: str = "",
        pid: Optional[int] = None,
    ) -> None:
        """Returns if every permission is granted; raises Denied."""
    def has_perm(self, subject: Context, object: Context, tclass: str, permissions: Union[str, Sequence[str]]) -> bool:
        """The same without a record."""
    def create(self, subject: Context, parent: Context, tclass: str, name: Optional[str] = None) -> Context:
        """The label of what `subject` makes in `parent`."""
    def explain(self, subject: Context, object: Context, tclass: str, permissions: Union[str, Sequence[str]]) -> dict[str, Any]:
        """`rules`, `reason`, `would_allow`."""
    def load(self, policy: Policy) -> int:
        """Replaces the policy; returns its number."""
    def set_boolean(self, name: str, value: bool) -> int: ...
    @property
    def enforcing(self) -> bool: ...
    @enforcing.setter
    def enforcing(self, value: bool) -> None: ...
    @property
    def seqno(self) -> int: ...
    @property
    def run(self) -> Optional[str]:
        """What `dewar policy set` and `dewar audit --run` call it; None without a daemon."""
    @property
    def lacking(self) -> list[tuple[str, str]]:
        """Classes and permissions that the policy does not have."""
    @property
    def stats(self) -> dict[str, int]:
        """How many decisions were found at a hint, in the cache, at the server."""

def peer(socket: Any) -> Peer:
    """Who connected this socket (or descriptor); OSError if it is not certain: grant nothing."""
