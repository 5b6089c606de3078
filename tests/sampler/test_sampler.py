"""JumboSampler: Optuna's own suites, then what a user of Optuna expects from it."""

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase
from sampled import QUICK, SPACE, f, objective

from jumbo_bo import JumboSampler, studies


class TestOptunaSuites(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return JumboSampler


class TestOptunaSuitesWithASpace(BasicSamplerTestCase, MultiObjectiveSamplerTestCase):
    """The suite asks for parameters that are not in the space."""

    @pytest.fixture
    def sampler(self):
        return lambda: JumboSampler(search_space={"another": FloatDistribution(0, 1)}, method="random")


class TestOptunaSuitesWithOldRuns(MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self, old):
        return lambda: JumboSampler(source_studies=old, method=QUICK)


def test_finds_a_good_point_without_old_runs():
    study = optuna.create_study(sampler=JumboSampler(n_trials=25, seed=1))
    study.optimize(objective, n_trials=25)
    assert study.best_value < 0.02
    assert study.best_params["n"] == 2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_old_runs_help_from_the_first_trial_on(seed, old):
    values = {}
    for name, past in (("with", old), ("without", ())):
        sampler = JumboSampler(search_space=SPACE, source_studies=past, method=QUICK, n_trials=6, seed=seed)
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=6)
        values[name] = [t.value for t in study.trials]
    assert values["with"][0] < 2 < values["without"][0]
    assert min(values["with"]) < min(values["without"])


def test_maximises(old):
    sampler = JumboSampler(source_studies=old, method=QUICK, seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: -objective(trial), n_trials=4)
    assert study.best_value > -1


def test_one_sampler_serves_studies_of_both_directions(old):
    sampler = JumboSampler(source_studies=old, method=QUICK, seed=0)
    for direction in ("minimize", "maximize", "minimize"):
        study = optuna.create_study(direction=direction, sampler=sampler)
        study.optimize(objective, n_trials=2)
        assert f(study.trials[0].params) < 2


def test_the_reason_is_kept_with_the_trial_and_visible_in_the_objective(old):
    seen = []

    def looks(trial):
        y = objective(trial)
        seen.append(trial.user_attrs["why"])
        return y

    study = optuna.create_study(sampler=JumboSampler(source_studies=old, method=QUICK, seed=0))
    study.optimize(looks, n_trials=2)
    assert [t.user_attrs["why"] for t in study.trials] == seen
    assert seen[0].startswith("Old runs rate this")
    explanation = studies.explanation(study.trials[1])
    assert explanation.why == seen[1]
    assert explanation.nearest[0].task in ("old-1", "old-22")


def test_same_seed_same_trials_and_no_seed_differs():
    def run(seed):
        study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, seed=seed))
        study.optimize(lambda t: objective(t) + t.suggest_float("outside", 0, 1), n_trials=5)
        return [t.params for t in study.trials]

    assert run(7) == run(7)
    assert run(7) != run(8)
    assert run(None) != run(None)


def test_without_a_seed_the_net_is_still_shared(old, tmp_path):
    for _ in range(2):
        sampler = JumboSampler(source_studies=old, method=QUICK, cache=tmp_path)
        optuna.create_study(sampler=sampler).optimize(objective, n_trials=1)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_nothing_is_learned_before_the_first_suggestion(old, tmp_path):
    sampler = JumboSampler(source_studies=old, method=QUICK, cache=tmp_path)
    assert not list(tmp_path.iterdir())
    optuna.create_study(sampler=sampler).ask(SPACE)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_default_cache_is_the_users_and_none_keeps_nothing(old, tmp_path, monkeypatch):
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path))
    optuna.create_study(sampler=JumboSampler(source_studies=old, method=QUICK, cache=None)).ask(SPACE)
    assert not list(tmp_path.iterdir())
    optuna.create_study(sampler=JumboSampler(source_studies=old, method=QUICK)).ask(SPACE)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1
