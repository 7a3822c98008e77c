"""QoS policies: which traffic classes there are and what each gets, apart from where that is enforced.

from twinnet import policies

compiled = policies.compile_policy(net, policies.find_policy("basic-cbq"), policies.Enforcement("core"), load)
compiled.deploy(net)
with net.simulate() as lab:
    ...
"""

from twinnet.policies.built_in import built_in_policies, find_policy, known_policies
from twinnet.policies.commands import open_vswitch_commands
from twinnet.policies.compiled import CompiledPolicy, Meter, Rule, SwitchRules
from twinnet.policies.compiler import compile_policy
from twinnet.policies.controller import PolicyController
from twinnet.policies.enforcement import EnforcedPort, Enforcement
from twinnet.policies.load import Demand, Load, spread_evenly
from twinnet.policies.match import Match
from twinnet.policies.policy import FunctionPolicy, Policy
from twinnet.policies.separation import Misplaced, misplaced_traffic
from twinnet.policies.traffic_class import TrafficClass

__all__ = [
    "CompiledPolicy",
    "Demand",
    "EnforcedPort",
    "Enforcement",
    "FunctionPolicy",
    "Load",
    "Match",
    "Meter",
    "Misplaced",
    "Policy",
    "PolicyController",
    "Rule",
    "SwitchRules",
    "TrafficClass",
    "built_in_policies",
    "compile_policy",
    "find_policy",
    "known_policies",
    "misplaced_traffic",
    "open_vswitch_commands",
    "spread_evenly",
]
