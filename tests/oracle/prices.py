"""A cost table at its default setting, read by itself: pJ for each word, and constant power. After docs/costs.md."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path


class Prices:
    """pj: word -> pJ, 0 for what pays nothing; words without a price are not there. watts: constant power."""

    def __init__(self, path: Path) -> None:
        table = tomllib.loads(path.read_text())
        self.books = table["books"]
        setting = next((one for one in table.get("setting", []) if one.get("default")), {})
        volts = {domain: self._volts(setting, domain) for domain in ("core", "memory")}
        names = dict(table.get("pj", {}))
        for domain, prices in table.get("pj_per_v2", {}).items():
            names |= {name: pj * volts[domain] ** 2 for name, pj in prices.items()}
        for domain, prices in table.get("pj_at_reference", {}).items():
            names |= {name: pj * volts[domain] ** 2 for name, pj in prices.items()}
        self.pj = {}
        for word, charge in table["charge"].items():
            if "formula" in charge:
                self.pj[word] = _evaluate(charge["formula"], names)
            elif "nothing" in charge:
                self.pj[word] = 0.0
        constant = table["constant_power"]
        self.watts = constant.get("w", 0.0)
        for domain, volt in volts.items():
            self.watts += constant.get(f"{domain}_w_per_v", 0.0) * volt
            self.watts += constant.get(f"{domain}_w_per_mhz_v2", 0.0) * volt**2 * setting.get(f"{domain}_mhz", 0.0)

    @staticmethod
    def _volts(setting: dict[str, float], domain: str) -> float:
        if f"{domain}_mv" in setting:
            return setting[f"{domain}_mv"] / 1000
        return setting.get(f"{domain}_v", setting.get(f"{domain}_v_rel", 1.0))


def _evaluate(formula: str, names: dict[str, float]) -> float:
    """Sums and products of numbers and names."""

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp):
            left, right = value(node.left), value(node.right)
            return left * right if isinstance(node.op, ast.Mult) else left + right
        return names[node.id] if isinstance(node, ast.Name) else float(ast.literal_eval(node))

    return value(ast.parse(formula, mode="eval").body)
