"""Model folders: what goes in comes out, and whatever is wrong with one is said in one line."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from idarts import InputError, derive
from idarts.spaces import network
from idarts.training import find_model, load, save

X = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(2))


def logits(net):
    with torch.no_grad():
        return net(X)


def change(folder, **keys):
    """Rewrite parts of config.json; a key a__b is b in a."""
    file = folder / "config.json"
    data = json.loads(file.read_text())
    data.pop("digest", None)  # as a person who edits it must do
    for key, value in keys.items():
        inner = data
        *path, last = key.split("__")
        for name in path:
            inner = inner[name]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    file.write_text(json.dumps(data))


def test_a_network_comes_back_to_the_bit(tmp_path, made):
    net, card = made
    before = torch.get_rng_state()
    again = load(save(tmp_path / "model", net, card))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(logits(again), logits(net))
    assert again.card == card
    assert not again.training
    assert all(weights.requires_grad for weights in again.parameters())
    assert {name: tensor.dtype for name, tensor in again.state_dict().items()} == {
        name: tensor.dtype for name, tensor in net.state_dict().items()
    }


def test_a_loaded_network_can_be_trained_on(folder):
    net = load(folder).train()
    net(X).sum().backward()
    assert all(weights.grad is not None for weights in net.parameters())


def test_the_configuration_says_all_that_other_programs_need(folder):
    found = json.loads((folder / "config.json").read_text())
    assert found["format"] == "idarts-model-1"
    assert found["auxiliary"] is False
    assert found["labels"] == ["class 0", "class 1", "class 2", "class 3"]
    assert found["preprocessing"]["image"] == [8, 8]
    assert found["preprocessing"]["colour"] == "RGB"
    assert found["preprocessing"]["mean"] == [0.4, 0.5, 0.6]
    assert found["macro"] == {"depth": 1, "channels": 4, "classes": 4, "image": 8, "large": False}
    assert set(found["versions"]) == {"idarts", "python", "torch"}
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert {oct(file.stat().st_mode)[-3:] for file in folder.iterdir()} == {"644"}
    assert oct(folder.stat().st_mode)[-3:] == "755"


def test_an_auxiliary_head_is_left_out(tmp_path, tiny):
    net, card = tiny("darts", image=32, auxiliary=True)
    again = load(save(tmp_path / "model", net, card))
    assert again.auxiliary is None
    assert not any(name.startswith("auxiliary.") for name in load_file(tmp_path / "model" / "model.safetensors"))
    assert torch.equal(logits(again), logits(net))


def test_channels_last_and_half_precision_weights(tmp_path, tiny):
    net, card = tiny("darts")
    again = load(save(tmp_path / "model", net.to(memory_format=torch.channels_last), card))
    assert torch.allclose(logits(again), logits(net), atol=1e-6)
    with pytest.raises(InputError, match=r"is of type torch.float16, expected torch.float32"):
        save(tmp_path / "half", net.half(), card)
    assert not (tmp_path / "half").exists()


@pytest.mark.parametrize("searched", [True, False])
def test_a_module_of_ones_own_is_given_to_load(tmp_path, own, searched):
    build, card = own
    net = derive(build(), card.architecture).eval()
    folder = save(tmp_path / "model", net, card)
    with pytest.raises(InputError, match=r"user's own module.*idarts.load\(folder, model="):
        load(folder)
    given = build() if searched else derive(build(), card.architecture)
    before = {name: tensor.clone() for name, tensor in given.state_dict().items()}
    again = load(folder, model=given)
    assert torch.equal(logits(again), logits(net))
    assert again.card == card
    assert again.mixed.weight is again.again.weight
    assert all(torch.equal(tensor, before[name]) for name, tensor in given.state_dict().items())
    with pytest.raises(InputError, match="the given model is another one"):
        load(folder, model=torch.nn.Linear(3, 4))


def test_a_network_that_needs_no_module_refuses_one(folder, own):
    with pytest.raises(InputError, match="is loaded without a model"):
        load(folder, model=own[0]())


def test_a_network_must_be_the_cards(tmp_path, tiny):
    net, _ = tiny("nas-bench-201", classes=5)
    _, card = tiny("nas-bench-201")
    with pytest.raises(InputError, match=r"not the one.*classifier.weight has shape \(5, 16\), expected \(4, 16\)"):
        save(tmp_path / "model", net, card)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unasked(folder, tiny):
    before = (folder / "model.safetensors").read_bytes()
    net, card = tiny("darts")
    with pytest.raises(InputError, match="already holds a model"):
        save(folder, net, card)
    assert (folder / "model.safetensors").read_bytes() == before
    (folder / "evaluation.json").write_text("{}")  # of the old weights: it goes with them
    save(folder, net, card, overwrite=True)
    assert load(folder).card == card
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert [file.name for file in folder.parent.iterdir()] == [folder.name]


def test_a_folder_with_other_things_is_never_replaced(tmp_path, tiny):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"holds thesis.tex, which is not part of a model"):
        save(tmp_path, *tiny("darts"), overwrite=True)
    with pytest.raises(InputError, match="is a file, expected a folder"):
        save(tmp_path / "thesis.tex", *tiny("darts"), overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_hidden_files_are_no_obstacle_and_stay(folder, tiny):
    (folder / ".DS_Store").write_text("of a file manager")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main")
    net, card = tiny("darts")
    save(folder, net, card, overwrite=True)
    assert load(folder).card == card
    assert (folder / ".DS_Store").read_text() == "of a file manager"
    assert (folder / ".git" / "HEAD").read_text() == "ref: refs/heads/main"
    assert [file.name for file in folder.parent.iterdir()] == [folder.name]


def test_a_failure_leaves_what_was_there(folder, tiny, monkeypatch):
    net, card = tiny("darts")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("idarts.training.model_folder.write_weights", full)
    with pytest.raises(InputError, match=r"cannot write .*: No space left on device"):
        save(folder, net, card, overwrite=True)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert [file.name for file in folder.parent.iterdir()] == [folder.name]


def test_a_training_runs_folder_will_do(tmp_path, tiny):
    net, card = tiny("nas-bench-201")
    save(tmp_path / "run" / "model", net, card)
    (tmp_path / "run" / "config.json").write_text('{"epochs": 3}')
    (tmp_path / "run" / "result.json").write_text("{}")
    assert find_model(tmp_path / "run") == tmp_path / "run" / "model"
    assert torch.equal(logits(load(tmp_path / "run")), logits(net))


def test_folders_that_hold_no_model(tmp_path):
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "result.json").write_text("{}")
    (tmp_path / "training" / "checkpoints").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name, message in {
        "search": "train it first: idarts train",
        "training": "no finished model yet",
        "empty": "expected config.json and model.safetensors",
        "file": "is not a folder",
        "nowhere": "is not a folder",
    }.items():
        with pytest.raises(InputError, match=message):
            load(tmp_path / name)


TAMPERED = {
    "missing key": ({"labels": ...}, "lacks the key 'labels'"),
    "other format": ({"format": "idarts-model-9"}, "format is 'idarts-model-9', expected 'idarts-model-1'"),
    "too few labels": ({"labels": ["cat"]}, "1 labels for 4 classes"),
    "labels that are no text": ({"labels": [1, 2, 3, 4]}, "expected the names of the classes"),
    "labels of one text": ({"labels": "abcd"}, "expected the names of the classes"),
    "no mean": ({"preprocessing__mean": ...}, "preprocessing lacks the key 'mean'"),
    "short mean": ({"preprocessing__mean": [0.5]}, "one finite number for each of 3 channels"),
    "mean of text": ({"preprocessing__mean": ["a", "b", "c"]}, "one finite number"),
    "std of zero": ({"preprocessing__std": [0, 1, 1]}, "expected numbers above 0"),
    "image of one side": ({"preprocessing__image": 8}, "expected height and width"),
    "no preprocessing": ({"preprocessing": 3}, "expected an object with keys"),
    "other channels": ({"in_channels": 1}, "mean is"),
    "other classes": ({"macro__classes": 5}, "4 labels for 5 classes"),
    "other depth": ({"macro__depth": 2}, "describes another network"),
    "depth of text": ({"macro__depth": "deep"}, "depth is 'deep'"),
    "macro lacks a part": ({"macro__depth": ...}, "macro lacks the key 'depth'"),
    "no macro": ({"macro": None}, "describes another network"),
    "auxiliary": ({"auxiliary": True}, "expected false"),
    "trained": ({"trained": []}, "trained is"),
    "no architecture": ({"architecture": "DARTS_V2"}, "expected an object with keys"),
    "unknown operation": (
        {"architecture__cells__cell__edges": [[0, 1, "rm -rf"]]},
        "config.json",
    ),
}


@pytest.mark.parametrize("case", [*TAMPERED])
def test_a_tampered_configuration_is_refused_in_one_line(folder, case):
    keys, message = TAMPERED[case]
    change(folder, **keys)
    with pytest.raises(InputError) as caught:
        load(folder)
    assert message in str(caught.value)
    assert str(folder / "config.json") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_operation_without_weights_cannot_be_exchanged_unseen(folder, tiny):
    """The names and shapes of all weights stay the same: only the note in the weights' file tells."""
    net, card = tiny("nas-bench-201")
    data = json.loads((folder / "config.json").read_text())
    data.pop("digest")
    edges = data["architecture"]["cells"]["cell"]["edges"]
    place = edges.index([0, 3, "avg_pool_3x3"])
    edges[place][2] = "skip_connect"
    other = network({**data["architecture"]}, card.macro)
    assert {name: tensor.shape for name, tensor in other.state_dict().items()} == {
        name: tensor.shape for name, tensor in net.state_dict().items()
    }
    (folder / "config.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="describes another network than the one whose weights"):
        load(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, "\x00"])
def test_a_configuration_that_is_no_json_object(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(InputError, match=r"config.json"):
        load(folder)


def test_missing_and_unreadable_files(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "bare")
    (tmp_path / "bare" / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"bare holds no model.safetensors$"):
        load(tmp_path / "bare")
    (folder / "config.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"config.json is not text in UTF-8"):
        load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"config.json cannot be read: No such file"):
        load(folder)


@pytest.mark.parametrize("keep", [0, 4, 100, 5000, -1])
def test_a_truncated_weights_file(folder, keep):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"model.safetensors is damaged"):
        load(folder)


def test_foreign_weights(folder):
    file = folder / "model.safetensors"
    state = load_file(file)
    save_file(state, file)
    with pytest.raises(InputError, match="was not written by idarts"):
        load(folder)
    torch.save(state, file)  # a pickle: it is not even opened as one
    with pytest.raises(InputError, match="damaged, or not a safetensors file"):
        load(folder)


def test_weights_with_the_right_note_but_another_tensor(folder):
    from safetensors import safe_open

    file = folder / "model.safetensors"
    with safe_open(file, framework="pt") as opened:
        note = {key: text for key, text in opened.metadata().items() if key != "digest"}
    state = load_file(file)
    for changed, message in (
        ({**state, "classifier.bias": torch.zeros(9)}, r"classifier.bias has shape \(9,\), expected \(4,\)"),
        ({**state, "more": torch.zeros(1)}, "more is unknown"),
        ({name: tensor for name, tensor in state.items() if name != "classifier.bias"}, "classifier.bias is missing"),
    ):
        save_file(changed, file, metadata=note)
        with pytest.raises(InputError, match=message):
            load(folder)
