"""Which tests should notice a fault in which file: the table of `make mutants`.

Area → files → tests, the fast ones first; the last row that matches a file counts. The doctests of a file run before
its tests. Together the tests of a row should take about ten seconds.
"""

Table = dict[str, dict[str, str]]

LOOP = "searching/test_loop -k 'not weights_learn and not exact[1] and not exact[3]'"
JOB = "searching/test_loop::TestCheckpoints engine/test_run_folder engine/test_run_job"
FUSED = "spaces/test_fused_supernets -k 'not leave_the_supernet_alone'"
CORE = "hypergrad/test_methods hypergrad/test_closed_forms hypergrad/test_diagnostics"
TABLE: Table = {
    "hypergrad": {
        "hypergrad/*.py": f"{CORE} hypergrad/test_network hypergrad/test_no_side_effects hypergrad/test_bad_input"
        " hypergrad/test_wrong_derivatives",
        "hypergrad/solvers/*.py": f"{CORE} hypergrad/test_bad_input",
        "hypergrad/solvers/[abfrs]*.py": "hypergrad/test_methods hypergrad/test_running hypergrad/test_closed_forms",
        "hypergrad/vectors.py": f"{CORE} hypergrad/test_bad_input devices/test_devices",  # which counts waits
        "hypergrad/warm.py": "hypergrad/test_methods hypergrad/test_running",
        "hypergrad/lift.py": "hypergrad/test_lift hypergrad/test_network hypergrad/test_bad_input",
        "hypergrad/swap.py": "hypergrad/test_lift hypergrad/test_network hypergrad/test_bad_input",
        "hypergrad/bilevel.py": "hypergrad/test_bilevel hypergrad/test_bad_input",
        "hypergrad/optimizers.py": "hypergrad/test_optimizers hypergrad/test_bilevel",
        "hypergrad/rules.py": "hypergrad/test_optimizers hypergrad/test_methods hypergrad/test_bilevel",
    },
    "loop": {
        "searching/loop.py": f"{LOOP} searching/test_method_p_darts searching/test_cost engine/test_ranks",
        "searching/round.py": LOOP,
        "searching/weights.py": LOOP,
        "searching/judge.py": f"searching/test_axes::TestSelection {LOOP}",
        "searching/budget.py": f"searching/test_budget {LOOP} searching/test_evaluators",
        "searching/curvature.py": "searching/test_curvature",
        "searching/stage.py": f"searching/test_method_p_darts {LOOP}",
        "searching/strategies/gradient.py": f"{LOOP} searching/test_method_regularisers searching/test_defaults",
    },
    "selections": {
        "searching/selections/*.py": "searching/test_axes::TestSelection searching/test_axes::TestTrials",
        "searching/selections/perturbation.py": "searching/test_axes::TestSelection searching/test_method_regularisers",
        "searching/selections/few_skips.py": "searching/test_method_p_darts",
        "searching/selections/evolution.py": "searching/test_novelty searching/test_axes::TestSelection",
    },
    "fused spaces": {
        "spaces/supernet.py": f"searching/test_method_pc_darts {FUSED}",
        "spaces/darts/supernet.py": FUSED,
        "spaces/nas_bench_201/supernet.py": f"{FUSED[:-1]} and not darts'",
        "spaces/nas_bench_1shot1/supernet.py": "spaces/test_1shot1_supernet"
        " spaces/test_relaxations::TestPartialChannels -k 'not hypergradients_equal'",
        "spaces/mobile/supernet.py": "spaces/test_mobile_supernet",
        "spaces/choice/supernet.py": "spaces/test_choice spaces/test_choice_bad_input spaces/test_choice_derive",
        "layers/parallel.py": f"layers/test_layers {FUSED}",
        "layers/mix*.py": f"layers/test_layers {FUSED}",
    },
    "checkpoints": {
        "engine/checkpoint.py": JOB,
        "engine/saving.py": JOB,
        "engine/run.py": JOB,
        "engine/folder.py": JOB,
        "engine/lock.py": JOB,
    },
    "ranks": {
        "engine/ranks/*.py": "engine/test_collectives engine/test_ranks",
    },
}
