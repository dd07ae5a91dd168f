"""A table of one's own: it answers with the share of convolutions, whatever the space."""


class Convolutions:
    def query(self, architecture):
        ops = [edge.op for cell in architecture.cells.values() for edge in cell.edges]
        return {"cifar10": {"test": 100.0 * sum("conv" in op for op in ops) / len(ops)}}

    def accuracy(self, architecture, dataset="cifar10", split="test"):
        return self.query(architecture)[dataset][split]


TABLE = Convolutions()
