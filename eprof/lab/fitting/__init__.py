"""Fitting a cost table to measured power: the form, the solver, and what the data can and cannot tell (docs/model.md).

P = sum_i rate_i c_i V_dom(i)^2 + c1_core V_core + c1_mem V_mem + P_misc [+ b_core f_core V_core^2
+ b_mem f_mem V_mem^2], all coefficients >= 0.
"""

from eprof.lab.fitting.solve import Fit, Form, fit

__all__ = ["Fit", "Form", "fit"]
