"""The Council's choices, from made-up observations: no I/O node, no clock."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.core.council import Account, Council, Experience
from penstock.errors import InputError
from penstock.learn.detection.features import doubt, operation
from penstock.model import Context, Observation, Parameter, Tune, Value

WINDOW = Parameter(name="window", values=(1, 2, 4, 8), default=2, together=True)
DEPTH = Parameter(name="depth", values=(4, 16), default=16, together=False)
MIB = 1 << 20


class Table:
    """A tuner that tries all values in turn, then takes the best; and tries what it is told to."""

    def __init__(self) -> None:
        self.rewards: defaultdict[Context, dict[Value, list[float]]] = defaultdict(dict)
        self.tries: list[Value] = []

    def choose(self, context: Context, values: Sequence[Value]) -> Value:
        if self.tries:
            return self.tries.pop(0)
        known = self.rewards[context]
        best = self.best(context, values)
        return next((v for v in values if v not in known), best if best is not None else values[0])

    def best(self, context: Context, values: Sequence[Value]) -> Value | None:
        known = self.rewards[context]
        if not known:
            return None
        return max((v for v in values if v in known), key=lambda v: sum(known[v]) / len(known[v]))

    def learn(self, context: Context, value: Value, reward: float) -> None:
        self.rewards[context].setdefault(value, []).append(reward)

    def learned(self) -> dict[str, Any]:
        return {"rewards": [(c, dict(v)) for c, v in self.rewards.items()]}

    def restore(self, learned: Mapping[str, Any]) -> None:
        if "rewards" not in learned:
            raise InputError("no rewards")
        self.rewards = defaultdict(dict, {c: dict(v) for c, v in learned["rewards"]})


def observed_interval(rate: float = 100.0, *, read: bool = False, **fields: Any) -> Observation:
    """An interval of a second, of 64 requests of 64 KiB by four clients."""
    plain = Observation(
        seconds=1.0,
        busy=1.0,
        reads=64 if read else 0,
        writes=0 if read else 64,
        read_bytes=int(rate) if read else 0,
        write_bytes=0 if read else int(rate),
        handles=1,
        clients=4,
        smallest=1,
        largest=1 << 30,
        asked=64 << 16,
        distance=1 << 18,
        forward=0.0,
        queued=4.0,
    )
    return replace(plain, **fields)


class FixedDetector:
    """A detector that always says the same."""

    def __init__(self, pattern: str = "shared-strided") -> None:
        self.pattern = pattern

    def situation(self, observation: Observation) -> tuple[Context | None, float]:
        if doubt(observation):
            return None, 0.0
        size = observation.asked // observation.requests
        context = Context(
            operation=operation(observation),
            pattern=self.pattern,
            size=size,
            load=observation.clients,
        )
        return context, 1.0


class World:
    """I/O nodes that do as they are told, and a Council of them."""

    def __init__(self, nodes: int, *parameters: Parameter, **options: Any) -> None:
        self.tuners = {p.name: Table() for p in parameters}
        self.council = Council(parameters, Experience(self.tuners), FixedDetector(), **options)
        self.has: dict[int, dict[str, Value]] = {}
        for k in range(nodes):
            self.do([self.council.joined(k)])

    def do(self, tunes: Sequence[Tune]) -> None:
        for tune in tunes:
            self.has[tune.resource] = self.has.get(tune.resource, {}) | dict(tune.settings)

    def report(self, k: int, observation: Observation) -> None:
        self.council.observed(k, observation, self.has[k])

    def second(self, rates: Mapping[int, Observation]) -> None:
        for k, observation in rates.items():
            self.report(k, observation)
        self.do(self.council.decide())


def by_window(world: World, best: int) -> dict[int, Observation]:
    """The nearer the window is to the best, the more bytes."""
    return {
        k: observed_interval(1000 / (1 + abs(math.log2(float(has["window"]) / best))))
        for k, has in world.has.items()
    }


def test_it_finds_the_window_that_all_do_best_with() -> None:
    world = World(3, WINDOW, guard=1.0)
    for _ in range(8):
        world.second(by_window(world, 8))
    assert {has["window"] for has in world.has.values()} == {8}
    assert world.council.exploring is None
    assert world.council.rounds == 8


def test_all_have_one_window_while_it_learns() -> None:
    world = World(4, WINDOW, guard=1.0)
    for _ in range(6):
        world.second(by_window(world, 1))
        assert len({has["window"] for has in world.has.values()}) == 1


def test_who_has_not_reported_when_the_round_ends_is_not_waited_for() -> None:
    world = World(3, WINDOW, guard=1.0)
    for k in range(2):
        world.report(k, observed_interval())
    assert world.council.missing == {2}
    world.do(world.council.decide())
    assert (world.council.rounds, world.council.missed) == (1, 1)
    assert world.council.missing == {0, 1, 2}


def test_a_report_counts_once_a_round() -> None:
    world = World(1, WINDOW, guard=1.0)
    world.second({0: observed_interval()})
    for rate in (100.0, 700.0):
        world.report(0, observed_interval(rate))
    world.do(world.council.decide())
    (known,) = world.tuners["window"].rewards.values()
    assert list(known.values()) == [[100.0]]


def test_who_has_gone_is_forgotten() -> None:
    world = World(2, WINDOW, guard=1.0)
    world.report(0, observed_interval())
    world.council.left(1)
    assert world.council.missing == set()
    world.council.observed(1, observed_interval(), {"window": 2})
    world.do(world.council.decide())
    assert (world.council.rounds, world.council.missed) == (1, 0)
    assert set(world.council.last) == {0}


def test_who_joins_gets_what_the_others_have() -> None:
    world = World(2, WINDOW, guard=1.0)
    world.tuners["window"].tries = [8]
    world.second({0: observed_interval(), 1: observed_interval()})
    assert world.council.joined(2).settings == {"window": 8}


def test_without_exploring_the_majority_has_its_way() -> None:
    world = World(3, WINDOW, guard=1.0)
    table = world.tuners["window"]
    small, large = observed_interval(1.0), observed_interval(1.0, asked=64 << 20)
    for observation, best in ((small, 8), (large, 1)):
        context = world.council.assess(observation).context
        assert context is not None
        for value in WINDOW.values:
            table.learn(context, value, 10.0 if value == best else 1.0)
    world.second({0: small, 1: large, 2: large})
    assert {has["window"] for has in world.has.values()} == {1}
    world.second({0: small, 1: small, 2: large})
    assert {has["window"] for has in world.has.values()} == {8}


def test_where_values_may_differ_each_has_its_own() -> None:
    world = World(2, DEPTH, guard=1.0)
    small, large = observed_interval(), observed_interval(asked=64 << 20)
    for _ in range(6):
        depth = {k: has["depth"] for k, has in world.has.items()}
        world.second(
            {
                0: replace(small, write_bytes=100 if depth[0] == 4 else 10),
                1: replace(large, write_bytes=100 if depth[1] == 16 else 10),
            }
        )
    assert world.has == {0: {"depth": 4}, 1: {"depth": 16}}


def test_one_parameter_at_a_time_explores_and_learns() -> None:
    world = World(1, WINDOW, DEPTH, guard=1.0)
    for _ in range(12):
        world.second({0: observed_interval(100.0)})
    tried = {name: set(next(iter(t.rewards.values()))) for name, t in world.tuners.items()}
    assert tried == {"window": {1, 2, 4, 8}, "depth": {4, 16}}
    counts = [sum(map(len, next(iter(t.rewards.values())).values())) for t in world.tuners.values()]
    assert sum(counts) == 11, "each interval's reward is of one parameter, the first of none"


def test_a_reward_is_of_the_value_that_the_node_had() -> None:
    """A node that was restarted, or could not be set, says so."""
    world = World(1, WINDOW, guard=1.0)
    world.second({0: observed_interval(1.0)})
    world.has[0]["window"] = 4
    world.second({0: observed_interval(7.0)})
    (known,) = world.tuners["window"].rewards.values()
    assert known == {4: [7.0]}
    world.has[0]["window"] = 77
    world.second({0: observed_interval(9.0)})
    assert known == {4: [7.0]}, "a value that is none of ours teaches nothing"


def test_many_nodes_are_one_observation(  # tuners forget by the number of observations
) -> None:
    world = World(4, WINDOW, guard=1.0)
    for rate in (100.0, 400.0):
        world.second({k: observed_interval(rate + k) for k in range(4)})
    (known,) = world.tuners["window"].rewards.values()
    assert list(known.values()) == [[401.5]], "the mean over the nodes"


def test_a_rate_that_cannot_be_is_not_believed() -> None:
    world = World(1, WINDOW, guard=1.0)
    for _ in range(12):
        world.second({0: observed_interval(100.0)})
    (known,) = world.tuners["window"].rewards.values()
    before = sum(map(len, known.values()))
    world.second({0: observed_interval(1e15)})
    world.second({0: observed_interval(120.0)})
    assert sum(map(len, known.values())) == before + 1


def test_a_rate_that_stays_is_believed() -> None:
    """A file system may become much faster than it was."""
    world = World(1, WINDOW, guard=1.0)
    for _ in range(12):
        world.second({0: observed_interval(100.0)})
    (known,) = world.tuners["window"].rewards.values()
    before = sum(map(len, known.values()))
    for _ in range(20):
        world.second({0: observed_interval(1e6)})
    assert sum(map(len, known.values())) >= before + 12


def test_intervals_in_which_nothing_moved_teach_nothing() -> None:
    """Reads at the end of a file: busy, and no byte."""
    world = World(1, WINDOW, guard=1.0)
    for _ in range(20):
        world.second({0: observed_interval(0.0)})
    assert world.council.experience.accounts == {}
    world.second({0: observed_interval(100.0)})
    assert world.council.rounds == 1


class Odd(Table):
    """A tuner that answers, or raises, what it should not."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def choose(self, context: Context, values: Sequence[Value]) -> Value:
        if isinstance(self.answer, BaseException):
            raise self.answer
        value: Value = self.answer
        return value

    best = choose

    def learn(self, context: Context, value: Value, reward: float) -> None:
        if isinstance(self.answer, BaseException):
            raise self.answer
        super().learn(context, value, reward)


@pytest.mark.parametrize("answer", [3000.0, "x", -1, RuntimeError("no")])
@pytest.mark.parametrize("parameter", [WINDOW, DEPTH], ids=lambda p: p.name)
def test_a_tuner_that_answers_nonsense_changes_nothing(parameter: Parameter, answer: Any) -> None:
    world = World(2, parameter)
    world.council.experience.tuners = {parameter.name: Odd(answer)}
    for _ in range(5):
        world.second({k: observed_interval() for k in range(2)})
    assert {has[parameter.name] for has in world.has.values()} == {parameter.default}
    assert world.council.experience.faults > 0
    assert parameter.name in world.council.experience.fault


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(0), GeneratorExit()])
def test_nothing_that_a_tuner_raises_ends_its_controller(error: BaseException) -> None:
    """Ctrl-C reaches a controller by a handler of its own; elsewhere it stays an interrupt."""
    tuner, context = Odd(error), Context(operation="write", pattern="x", size=1, load=1)
    live = Experience({WINDOW.name: tuner}, interruptible=False)
    assert live.choose(WINDOW, context) is None
    assert (live.faults, type(error).__name__ in live.fault) == (1, True)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            Experience({WINDOW.name: tuner}).choose(WINDOW, context)


def test_the_guard_is_each_contexts_own() -> None:
    """If values may differ, an I/O node that has spent its share exploits while others explore."""
    world = World(2, DEPTH, guard=0.05)
    small, large = observed_interval(), observed_interval(asked=64 << 20)
    spent, fresh = (world.council.assess(o).context for o in (small, large))
    assert spent is not None
    assert fresh is not None
    world.council.experience.accounts[spent] = Account(usual=100.0, cost=0.9, rounds=50)
    table = world.tuners["depth"]
    for context in (spent, fresh):
        table.learn(context, 16, 100.0)
    world.second({0: small, 1: large})
    assert world.has == {0: {"depth": 16}, 1: {"depth": 4}}
    assert world.council.guarded == 1
    cost = world.council.experience.accounts[spent].cost
    world.second({0: small, 1: large})
    assert world.council.experience.accounts[spent].cost < cost, "another's trial is not its cost"


def test_groups_teach_once_a_round() -> None:
    table = Table()
    experience = Experience({"window": table})
    groups = [Council([WINDOW], experience, FixedDetector(), guard=1.0) for _ in range(5)]
    for k, council in enumerate(groups):
        council.joined(k)
    for _ in range(2):
        for k, council in enumerate(groups):
            council.observed(k, observed_interval(100.0 + k), {"window": 2})
        experience.teach()
        for council in groups:
            council.choose()
    (known,) = table.rewards.values()
    assert known == {2: [102.0]}


def test_the_guard_stops_exploring_that_costs_too_much() -> None:
    """Values other than the best lose all: trying them may cost a twentieth of the bandwidth."""
    world = World(1, WINDOW, guard=0.05)
    table = world.tuners["window"]
    worst, got = 0, 0.0
    for k in range(400):
        table.tries = [1] if k > 3 else []
        best = world.has[0]["window"] == 8 or k < 4
        worst += not best
        got += 100.0 if best else 0.0
        world.second(
            {0: observed_interval(100.0 if world.has[0]["window"] == 8 else 1.0 if k > 3 else 50.0)}
        )
        if k == 3:
            (context,) = table.rewards
            table.rewards[context] = {8: [100.0], 1: [1.0], 2: [1.0], 4: [1.0]}
    assert world.council.guarded > 300
    assert worst < 0.1 * 400


def test_idle_and_absurd_intervals_teach_nothing() -> None:
    world = World(1, WINDOW, guard=1.0)
    world.second({0: observed_interval()})
    for odd in (
        observed_interval(busy=0.0),
        observed_interval(busy=0.001),
        observed_interval(busy=math.nan),
        observed_interval(busy=-1.0),
        observed_interval(busy=1e9),
        observed_interval(distance=math.inf),
        observed_interval(clients=0),
        observed_interval(asked=0),
        observed_interval(writes=0),
    ):
        world.second({0: odd})
        assert world.council.last[0].context is None
        assert world.council.last[0].pattern == "unknown"
    assert not any(world.tuners["window"].rewards.values())
    assert world.council.rounds == 1


class BySize(FixedDetector):
    """A detector that knows the pattern of small requests only."""

    def situation(self, observation: Observation) -> tuple[Context | None, float]:
        context, confidence = super().situation(observation)
        if context is None or context.size <= 1 << 16:
            return context, confidence
        return replace(context, pattern="unknown"), 0.0


def test_nothing_is_tuned_where_the_pattern_is_unknown() -> None:
    """Neither learnt nor explored: the I/O nodes go back to the site's own settings."""
    world = World(2, WINDOW, DEPTH, guard=1.0)
    for _ in range(12):
        world.second(by_window(world, 8))
    assert {has["window"] for has in world.has.values()} == {8}
    rounds, learned = world.council.rounds, world.council.experience.learned()
    world.council.detector = BySize()
    world.tuners["depth"].tries = world.tuners["window"].tries = [4, 4]
    for _ in range(3):
        world.second(dict.fromkeys((0, 1), observed_interval(asked=64 << 20)))
        assert world.has[0] == world.has[1] == {"window": 2, "depth": 16}
    assert world.council.last[0].pattern == "unknown"
    assert (world.council.rounds, world.council.exploring) == (rounds, None)
    assert world.council.experience.learned() == learned


def test_those_whose_pattern_is_unknown_follow_where_all_need_one_value() -> None:
    world = World(3, WINDOW, DEPTH, guard=1.0)
    world.council.detector = BySize()
    known, unknown = observed_interval(), observed_interval(asked=64 << 20)
    context = world.council.assess(known).context
    assert context is not None
    for parameter, best in ((WINDOW, 8), (DEPTH, 4)):
        for value in parameter.values:
            world.tuners[parameter.name].learn(context, value, 1000.0 if value == best else 1.0)
    world.second({0: known, 1: unknown, 2: unknown})
    assert [has["window"] for has in world.has.values()] == [8, 8, 8], "two unknown have no vote"
    assert [has["depth"] for has in world.has.values()] == [4, 16, 16]


def test_reads_and_writes_are_learnt_apart() -> None:
    world = World(1, WINDOW, guard=1.0)
    for k in range(20):
        read = k % 2 == 0
        good = world.has[0]["window"] == (8 if read else 1)
        world.second({0: observed_interval(100.0 if good else 50.0, read=read)})
    contexts = world.tuners["window"].rewards
    assert {c.operation for c in contexts} == {"read", "write"}


def test_what_was_learnt_goes_on_in_another() -> None:
    world = World(2, WINDOW, guard=1.0)
    for _ in range(8):
        world.second(by_window(world, 8))
    other = World(2, WINDOW, guard=1.0)
    other.council.experience.restore(world.council.experience.learned())
    other.second(by_window(other, 8))
    assert {has["window"] for has in other.has.values()} == {8}
    assert other.council.experience.learned()["accounts"] != []


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"version": 2, "tuners": {}, "accounts": []},
        {"version": 1, "tuners": {}},
        {"version": 1, "tuners": {"window": {}}, "accounts": []},
        {"version": 1, "tuners": {}, "accounts": [["read", "x"]]},
    ],
)
def test_damaged_state_is_refused_and_changes_nothing(damaged: dict[str, Any]) -> None:
    world = World(1, WINDOW, guard=1.0)
    for _ in range(4):
        world.second({0: observed_interval()})
    before = world.council.experience.learned()
    with pytest.raises(InputError):
        world.council.experience.restore(damaged)
    assert world.council.experience.learned() == before


def test_another_detector_takes_over_while_it_runs() -> None:
    world = World(1, WINDOW, guard=1.0)
    world.second({0: observed_interval()})
    world.council.detector = FixedDetector("file-per-process")
    world.second({0: observed_interval()})
    assert world.council.last[0].pattern == "file-per-process"


def test_an_io_node_of_one_application_prefers_what_that_one_did_best_with() -> None:
    """All have one context, in which 16 is best; the application of node 0 did best with 4."""
    world = World(2, DEPTH, guard=0.0)
    for depth, rate in ((4, 10.0), (16, 100.0)):
        world.tuners["depth"].learn(detected_context(), depth, rate)
    world.council.prefer(0, {"depth": 4})
    for _ in range(4):
        world.second({k: observed_interval() for k in world.has})
    assert {k: has["depth"] for k, has in world.has.items()} == {0: 4, 1: 16}
    world.council.prefer(0, {})  # several applications
    world.second({k: observed_interval() for k in world.has})
    assert world.has[0]["depth"] == 16


def test_a_job_that_begins_starts_from_the_preferred_values_before_any_report() -> None:
    world = World(2, DEPTH, WINDOW, guard=0.0)
    world.council.prefer(0, {"depth": 4, "window": 8})
    tune = world.council.begin(0)
    assert tune is not None
    # A window must be the same on all I/O nodes, so it is not set on one.
    assert (tune.resource, tune.settings) == (0, {"depth": 4, "window": 2})
    assert world.council.begin(0) is None  # it has them
    assert world.council.begin(1) is None
    assert world.council.begin(7) is None  # there is no such I/O node


def test_a_preferred_value_that_is_no_candidate_is_not_used() -> None:
    world = World(1, DEPTH, guard=0.0)
    world.council.prefer(0, {"depth": 5})
    assert world.council.begin(0) is None


def test_the_window_of_most_applications_wins() -> None:
    """Two of three I/O nodes serve an application that did best with 8."""
    world = World(3, WINDOW, guard=0.0)
    for window in WINDOW.values:
        world.tuners["window"].learn(detected_context(), window, 100.0 if window == 4 else 1.0)
    for k in (0, 1):
        world.council.prefer(k, {"window": 8})
    for _ in range(2):
        world.second({k: observed_interval() for k in world.has})
    assert {has["window"] for has in world.has.values()} == {8}


def detected_context() -> Context:
    """Return what the detector says of an interval."""
    context, _ = FixedDetector().situation(observed_interval())
    assert context is not None
    return context
