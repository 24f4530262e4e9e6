"""The stages of the study: train the classifier, the energy and the samplers, draw, judge, ship."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from reproduce.data.images import Images
from reproduce.images import DistanceEnergy, Generator
from reproduce.pretrained import NAMES, ship
from reproduce.records import Record, of_recipe
from reproduce.rivals.annealed_langevin import Start
from reproduce.studies.ebm.classifier import classifier_stage, look
from reproduce.studies.ebm.energy import energy_stage, target_of
from reproduce.studies.ebm.judge import Judge
from reproduce.studies.ebm.keeping import Store
from reproduce.studies.ebm.langevin import drawn, operations, seconds_per_image
from reproduce.studies.ebm.plan import count
from reproduce.studies.ebm.recipes import recipe_of
from reproduce.studies.ebm.sampler import Workshop, draw
from reproduce.studies.ebm.settings import Settings
from reproduce.targets import ImageEnergy

SHOWN = 64


def recorded_rows(settings: Settings, held: list[Record]) -> dict[int, list[Record]]:
    """Return the records of rows that were judged on as many sets as the settings ask for, their time apart.

    Energy and classifier are the same for the same settings and seed; with others a folder is refused.
    """
    rows: dict[int, list[Record]] = {}
    for number in settings.evaluations:
        own = [
            r for r in held
            if r.method == f"langevin-{number}"
            and r.metric != "seconds_per_image"
            and not r.metric.endswith("_fresh")
        ]  # fmt: skip
        sets = {(r.repeats, r.n) for r in own if r.metric == "fid_as_rows"}
        if sets == {(settings.row_sets, settings.row_images)}:
            rows[number] = own
    return rows


class Work:
    """The stages; each returns what it made, from its checkpoint where that is finished."""

    def __init__(
        self,
        settings: Settings,
        data: Images,
        store: Store,
        observe: Callable[[str], None],
        held: list[Record],
    ):
        self.settings, self.data, self.store, self.observe = settings, data, store, observe
        self.rows, self.held = recorded_rows(settings, held), held
        self.pieces, self.shape = store.pieces, data.shape
        self.start = Start.of(data.train[:10_000].reshape(-1, data.shape[0] * data.shape[1]) / 255.0)
        self._made: dict[str, Any] = {}

    def classifier(self) -> Any:
        """Train the classifier."""
        return self._once("classifier", lambda: classifier_stage(
            self.settings, self.data, self.pieces, self.observe
        ))  # fmt: skip

    def energy(self) -> Any:
        """Train the energy."""
        return self._once("energy", lambda: energy_stage(
            self.settings, self.shape, jax.device_put(self.data.train), self.pieces, self.observe
        ))  # fmt: skip

    def langevin(self) -> dict[int, np.ndarray]:
        """Draw every row of the Langevin table that is not recorded yet."""
        s = self.settings
        return {
            number: self._drawn(f"langevin-{number}", 7 + number, number, s.row_sets * s.row_images)
            for number in s.evaluations
            if number not in self.rows
        }

    def sampler(self) -> dict[str, Any]:
        """Train the KL samplers."""
        return {name: self._net(name) for name in self.settings.samplers if name != "fisher"}

    def fisher(self) -> dict[str, Any]:
        """Train the Fisher sampler."""
        return {name: self._net(name) for name in self.settings.samplers if name == "fisher"}

    def judge(self) -> list[Record]:
        """Judge everything and return all records."""
        s, judge = self.settings, Judge(self.settings, self.data, partial(look, self.classifier()))
        shown = {"grid/data": self.data.test[:SHOWN]}
        rows, drawn_now = dict(self.rows), self.langevin()
        for number, row in drawn_now.items():
            name = f"langevin-{number}"
            same = judge.means(name, np.split(row, s.row_sets), "_as_rows")
            one = judge.images(name, row[: s.row_images])
            rows[number] = [judge.record(name, "nfe", number), *one, *same]
            shown[f"grid/{name}"] = row[:SHOWN]
        found = [judge.accuracy(), *(record for number in s.evaluations for record in rows[number])]
        found += self._best_row_again(judge, found)
        start = ("start",) if s.recipe == "warm" else ()
        for name in (*start, *reversed(s.samplers)):
            key, most = jax.random.fold_in(jax.random.key(s.seed), 1000), s.judge_sets * s.row_images
            made = draw(key, self._net(name), max(s.judge_images, most), self.shape)
            shown[f"grid/{name}"] = made[:SHOWN]
            # FID depends on the number of images, so it is also taken of sets as large as those of the rows.
            # And it is noisy; a sampler can have many sets of images.
            same = judge.means(name, np.split(made[:most], s.judge_sets), "_as_rows")
            judged = [judge.record(name, "nfe", 1), *judge.images(name, made[: s.judge_images]), *same]
            found += of_recipe(recipe_of(name, s), judged)
            self.observe(f"{name}: " + ", ".join(f"{r.metric} {r.value:.4g}" for r in same))
        found += self._evenly(judge)
        self.store.add(shown)
        return [*found, *self._sizes(judge), *self._costs(judge)]

    def _best_row_again(self, judge: Judge, found: list[Record]) -> list[Record]:
        """Judge the best of the rows on fresh sets: the lowest of some noisy means is too low."""
        s = self.settings
        fids = {r.method: r.value for r in found if r.metric == "fid_as_rows"}
        name = min(fids, key=lambda method: fids[method])
        number = int(name.removeprefix("langevin-"))
        kept = [r for r in self.held if r.method == name and r.metric.endswith("_fresh")]
        if kept and all((r.repeats, r.n) == (s.fresh_sets, s.row_images) for r in kept):
            return kept
        row = self._drawn(f"{name}-fresh", 10_007 + number, number, s.fresh_sets * s.row_images)
        fresh = judge.means(name, np.split(row, s.fresh_sets), "_fresh")
        self.observe(f"{name}, fresh: " + ", ".join(f"{r.metric} {r.value:.4g}" for r in fresh))
        return fresh

    def _evenly(self, judge: Judge) -> list[Record]:
        """Judge the first sampler once more, its latents spread evenly: what no chain can do."""
        s, key = self.settings, jax.random.fold_in(jax.random.key(self.settings.seed), 1001)
        net, name = self._net(s.samplers[0]), f"{s.samplers[0]}-sobol"
        keys = jax.random.split(key, s.judge_sets)
        sets = [draw(k, net, s.row_images, self.shape, latents="sobol") for k in keys]
        same = judge.means(name, sets, "_as_rows")
        self.observe(f"{name}: " + ", ".join(f"{r.metric} {r.value:.4g}" for r in same))
        judged = [judge.record(name, "nfe", 1), *judge.images(name, sets[0]), *same]
        return of_recipe(recipe_of(s.samplers[0], s), judged)

    def _costs(self, judge: Judge) -> list[Record]:
        # One architecture: one sampler's time and operations are all the others'.
        s, timed = self.settings, {name: self._net(name) for name in self.settings.samplers[:1]}
        times = seconds_per_image(s, self._target(), self.start, timed)
        flops = operations(self._target(), timed, s.langevin_batch)
        return [
            *(
                judge.record(name, "seconds_per_image", value, spread=spread, n=n, repeats=s.speed_repeats)
                for name, (value, spread, n) in times.items()
            ),
            *(judge.record("energy" if n == "evaluation" else n, "flops", f) for n, f in flops.items()),
        ]

    def ship(self) -> Path | None:
        """Write the weights that come with the package, `ebm.safetensors` beside the records."""
        energy, generators = self.energy(), self.sampler() | self.fisher()
        shipped = {name: net for name, net in generators.items() if name in NAMES.values()}
        if not isinstance(energy, DistanceEnergy) or not all(
            isinstance(n, Generator) for n in shipped.values()
        ):
            self.observe("ship: the paper's networks are too large to come with the package")
            return None
        path = self.store.path.with_name(f"{Settings.study}.safetensors")
        height, width = self.shape
        about = {
            "height": height, "width": width, "sigma_min": self.settings.sigma_min,
            "made_by": f"pushforward study ebm --preset {self.settings.preset} --data FOLDER",
        }  # fmt: skip
        ship(path, energy, shipped, about)
        return path

    def _sizes(self, judge: Judge) -> list[Record]:
        s = self.settings
        taken = {"classifier": s.classifier_steps, "energy": s.energy_steps}
        nets = {"classifier": self.classifier(), "energy": self.energy()}
        nets |= {name: self._net(name) for name in s.samplers}
        found = []
        for name, net in nets.items():
            steps = s.steps(taken[name]) if name in taken else recipe_of(name, s).steps
            found.append(judge.record(name, "parameters", count(net)))
            found.append(judge.record(name, "iterations", steps))
        if s.recipe == "warm":
            found.append(judge.record("start", "iterations", s.steps(s.start_steps)))
        return found

    def _target(self) -> ImageEnergy:
        return target_of(self.energy(), self.settings, self.shape)

    def _teacher(self) -> np.ndarray:
        s = self.settings
        return self._drawn("teacher", 5, s.teacher_evaluations, s.teacher_images)

    def _net(self, name: str) -> Any:
        """Return a trained sampler, or where they began, to be judged beside them."""
        return self._once(name, lambda: self._workshop().train(name))

    def _workshop(self) -> Workshop:
        warm = self.settings.recipe == "warm"
        return self._once("workshop", lambda: Workshop(
            self.settings, self.energy(), self._teacher() if warm else None, self.pieces,
            shape=self.shape, observe=self.observe, note=self.store.add,
        ))  # fmt: skip

    def _drawn(self, name: str, number: int, evaluations: int, num_images: int) -> np.ndarray:
        return self._once(name, lambda: drawn(
            name, jax.random.fold_in(jax.random.key(self.settings.seed), number), self.settings,
            self._target(), self.start, evaluations=evaluations, num_images=num_images, folder=self.pieces,
            observe=self.observe,
        ))  # fmt: skip

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]
