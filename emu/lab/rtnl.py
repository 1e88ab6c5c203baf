"""pyroute2's classes of netlink messages, without the rest of pyroute2.

pyroute2's `__init__` imports all of its 160 modules, for 0.1 s in every lab. These classes need
a quarter of them, so the package is entered without its `__init__`: in a process that imports
this module `pyroute2.IPRoute` is `pyroute2.iproute.linux.IPRoute`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec

if "pyroute2" not in sys.modules and (_package := find_spec("pyroute2")):
    sys.modules["pyroute2"] = module_from_spec(_package)

from pyroute2.netlink import (
    NLM_F_ACK,
    NLM_F_CREATE,
    NLM_F_DUMP,
    NLM_F_EXCL,
    NLM_F_REQUEST,
    NLMSG_DONE,
    NLMSG_ERROR,
    nlmsg,
    nlmsgerr,
    rtnl,
)
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

__all__ = [
    "NLMSG_DONE",
    "NLMSG_ERROR",
    "NLM_F_ACK",
    "NLM_F_CREATE",
    "NLM_F_DUMP",
    "NLM_F_EXCL",
    "NLM_F_REQUEST",
    "ifaddrmsg",
    "ifinfmsg",
    "ndmsg",
    "nlmsg",
    "nlmsgerr",
    "rtmsg",
    "rtnl",
    "tcmsg",
]
