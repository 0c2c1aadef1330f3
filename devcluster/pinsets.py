"""Which binaries a devcluster needs, where each is pinned and with which settings it is built.

The settings are part of the identity of a build: the same pins with other flags are other binaries, and a
mixed use of flags makes Go compile everything twice.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

PINS_DIR = Path(__file__).parent / "pins"
KUBERNETES_VERSION = "v1.36.3"
PROMETHEUS_VERSION = "0.313.5"
KUEUE_VERSION = "v0.17.0"
NEEDED_GO = (1, 26, 0)

BUILD_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}

_KUBERNETES_STAMPS = {
    "gitVersion": KUBERNETES_VERSION,
    "gitMajor": KUBERNETES_VERSION.removeprefix("v").split(".")[0],
    "gitMinor": KUBERNETES_VERSION.split(".")[1],
}


@dataclass(frozen=True, kw_only=True)
class PinSet:
    """One Go module of pins and the binaries that it yields.

    `renames` maps the name under which Go installs a binary to the name we use.  `copied_modules` maps a
    module path to the folders of data files inside it that are needed at run time.  `pins` is the folder of pins where
    that is not the name's own; a set without binaries only copies data.
    """

    name: str
    pins: str = ""
    binaries: tuple[str, ...]
    expected_minutes: int
    ldflags: str
    tags: str = ""
    renames: tuple[tuple[str, str], ...] = ()
    copied_modules: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def directory(self) -> Path:
        """The folder with the module's go.mod and go.sum."""
        return PINS_DIR / (self.pins or self.name)

    def install_arguments(self) -> list[str]:
        """The arguments of `go` that build and install every binary of the set in one go."""
        tags = ["-tags", self.tags] if self.tags else []
        return ["install", "-buildvcs=false", "-trimpath", *tags, "-ldflags", self.ldflags, "tool"]

    def key(self) -> str:
        """A short hash that changes whenever the built binaries would."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.directory / name).read_bytes())
        digest.update(repr((self.install_arguments(), sorted(BUILD_ENVIRONMENT.items()))).encode())
        digest.update(repr((self.renames, self.copied_modules)).encode())
        return digest.hexdigest()[:16]


CONTROL_PLANE = PinSet(
    name="controlplane",
    binaries=("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"),
    expected_minutes=9,
    ldflags="-s -w "
    + " ".join(
        f"-X k8s.io/component-base/version.{key}={value}" for key, value in _KUBERNETES_STAMPS.items()
    ),
    renames=(("server", "etcd"),),
    copied_modules=(
        (
            "sigs.k8s.io/kwok",
            (
                "kustomize/stage/node/fast",
                "kustomize/stage/node/heartbeat-with-lease",
                "kustomize/stage/pod/fast",
            ),
        ),
    ),
)

PROMETHEUS = PinSet(
    name="prometheus",
    binaries=("prometheus", "promtool"),
    expected_minutes=4,
    ldflags=f"-s -w -X github.com/prometheus/common/version.Version={PROMETHEUS_VERSION}",
    tags="remove_all_sd,netgo",
)

KUEUE = PinSet(
    name="kueue",
    binaries=("kueue",),
    expected_minutes=4,
    ldflags="-s -w",
    copied_modules=(("sigs.k8s.io/kueue", ("config/components/crd/bases", "config/components/webhook")),),
)

KUEUE_CRDS = PinSet(
    name="kueue-crds",
    pins="kueue",
    binaries=(),
    expected_minutes=1,
    ldflags="",
    copied_modules=(("sigs.k8s.io/kueue", ("config/components/crd/bases",)),),
)

ALL_PIN_SETS = (CONTROL_PLANE, PROMETHEUS)
"""What every devcluster needs."""
ON_DEMAND_PIN_SETS = (KUEUE, KUEUE_CRDS)
"""What is built only when a test asks for it."""
