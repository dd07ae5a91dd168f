"""The published cells: all there, with their origin."""

import pytest

from idarts.arch import registry
from idarts.errors import InputError
from idarts.spaces import darts

PUBLISHED = """
    NASNet-A AmoebaNet-A PNASNet-5 ENAS DARTS_V1 DARTS_V2 SNAS_mild GDAS_V1 SETN PC_DARTS_cifar PC_DARTS_image PDARTS
    DrNAS_cifar10 DrNAS_imagenet XNAS MdeNAS Random_NSAS Random_NSAS_C iDARTS SGAS_best SDARTS_RS SDARTS_ADV
    SNAS_moderate SNAS_aggressive EN2AS EN2AS_PR
"""


def test_every_published_cell_is_there():
    assert set(PUBLISHED.split()) <= set(registry.names())
    assert all(registry.entry(name).architecture.space == "darts" for name in PUBLISHED.split())


def test_names_and_cells_are_distinct():
    cells = [registry.entry(name).architecture for name in registry.names()]
    assert len(set(cells)) == len(cells)
    assert [registry.entry_of(cell).name for cell in cells] == registry.names()


@pytest.mark.parametrize("name", registry.names())
def test_provenance(name):
    provenance = registry.entry(name).provenance
    assert set(provenance) <= {"paper", "source", "note", "published"}
    assert provenance["paper"]
    assert provenance["source"]
    assert all(isinstance(value, (int, float)) for value in provenance.get("published", {}).values())


def test_the_idarts_cell_says_that_it_is_a_transcription():
    entry = registry.entry("iDARTS")
    assert "third party's transcription" in entry.provenance["source"]
    assert "not confirmed" in entry.provenance["note"]
    assert darts.to_genotype(entry.architecture).normal == [
        ("skip_connect", 0),
        ("dil_conv_3x3", 1),
        ("sep_conv_3x3", 0),
        ("sep_conv_3x3", 2),
        ("sep_conv_3x3", 0),
        ("sep_conv_3x3", 1),
        ("sep_conv_3x3", 1),
        ("dil_conv_5x5", 3),
    ]


def test_2_85_percent_belong_to_snas_moderate_cell():
    errors = {
        name: registry.entry(f"SNAS_{name}").provenance["published"]["cifar10_test_error_percent"]
        for name in ("mild", "moderate", "aggressive")
    }
    assert errors == {"mild": 2.98, "moderate": 2.85, "aggressive": 3.1}
    assert registry.entry("SNAS_moderate").architecture.cells["normal"].edges[0].op == "dil_conv_5x5"


def test_cells_that_the_authors_own_files_confirm():
    for name in ("SNAS_mild", "MdeNAS", "XNAS", "EN2AS"):
        assert "(authors)" in registry.entry(name).provenance["source"]


def test_an_unknown_name_is_answered_with_its_neighbours():
    with pytest.raises(
        InputError, match=r"no published cell is called 'PCDARTS'; did you mean PDARTS, iDARTS, PC_DARTS"
    ):
        registry.entry("PCDARTS")


def test_nas_bench_201_values_are_the_table_s(table):
    columns = table("nasbench201_tss.parquet", "arch_str", "cifar10_test_200ep_mean", "imagenet16_test_200ep_mean")
    from idarts.spaces import nas_bench_201

    for name in registry.names():
        entry = registry.entry(name)
        if entry.architecture.space == "nas-bench-201":
            row = columns["arch_str"].index(nas_bench_201.to_string(entry.architecture))
            published = entry.provenance["published"]
            for dataset in ("cifar10", "imagenet16"):
                value = columns[f"{dataset}_test_200ep_mean"][row]
                assert published[f"{dataset}_test_accuracy_percent"] == pytest.approx(value, abs=0.006)
