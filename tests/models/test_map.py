"""Maximum a posteriori against the closed form of a Gaussian likelihood."""

import numpy as np
import pytest

from jumbo_bo.models.map import TOLERANCE, maximum_a_posteriori

MEAN, SD = np.array([0.5, -2.0]), np.array([1.0, 0.3])


def gaussian(centre, scale):
    """log N(centre | theta, scale^2) and its gradient."""

    def evidence(theta):
        pull = (centre - theta) / scale
        return -0.5 * float(pull @ pull), pull / scale

    return evidence


def test_gaussian_evidence_and_prior_meet_by_their_precisions():
    centre, scale = np.array([1.5, -2.4]), np.array([0.5, 0.4])
    theta = maximum_a_posteriori(gaussian(centre, scale), MEAN, SD)
    precisions = SD**-2 + scale**-2
    # L-BFGS stops at a gradient of 1e-5; the curvature is at least 5.
    np.testing.assert_allclose(theta, (MEAN / SD**2 + centre / scale**2) / precisions, atol=1e-5)


def test_stays_within_four_sd_of_the_prior_and_above_the_lowest():
    far = gaussian(np.array([100.0, -100.0]), np.array([1e-2, 1e-2]))
    np.testing.assert_allclose(maximum_a_posteriori(far, MEAN, SD), MEAN + 4 * SD * [1, -1])
    np.testing.assert_allclose(maximum_a_posteriori(far, MEAN, SD, lowest=-2.5), [MEAN[0] + 4 * SD[0], -2.5])


@pytest.mark.parametrize("order", [1, -1])
def test_takes_the_better_of_two_peaks_whichever_start_comes_first(order):
    def evidence(theta):  # peaks near -1 and 1, the right one is higher
        t = float(theta[0])
        return -20.0 * (t * t - 1.0) ** 2 + t, np.array([-80.0 * t * (t * t - 1.0) + 1.0])

    starts = [np.array([-1.2]), np.array([1.2])]
    wide = np.zeros(1), np.array([10.0])
    theta = maximum_a_posteriori(evidence, *wide, starts[::order], options={"maxiter": 50, **TOLERANCE})
    assert theta[0] == pytest.approx(1.0, abs=0.02)
    assert maximum_a_posteriori(evidence, *wide, starts[:1])[0] == pytest.approx(-1.0, abs=0.02)


def test_options_reach_the_search():
    evidence = gaussian(np.array([1.5, -2.4]), np.array([0.5, 0.4]))
    calls = []

    def counted(theta):
        calls.append(theta)
        return evidence(theta)

    maximum_a_posteriori(counted, MEAN, SD, options={"gtol": 1e9})  # the start is good enough
    assert len(calls) == 1
