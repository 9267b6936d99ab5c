"""The graph of a block of a program: operators, and the versions of variables between them."""
from .._terminal import counted
from .graph import Graph

__all__ = ["program_graph"]

#: Part of the program -> color of its operators.
ROLES = (("forward", "#cfe3f5"), ("backward", "#f9dcc4"), ("optimizer", "#d5ecd0"), ("schedule", "#e6daf0"))
PARAMETER, STATE, FED, TEMPORARY, HIGHLIGHT = "#ffe9a8", "#e4e4e4", "#f7c6d9", "#ffffff", "#ff8a80"
BACKWARD, OPTIMIZE, SCHEDULE = 1, 2, 16
EMPTY = "@EMPTY@"


def _part(op):
    role = op.attr("op_role") if op.has_attr("op_role") else 0
    if role & SCHEDULE:
        return 3
    return 2 if role & OPTIMIZE else 1 if role & BACKWARD else 0


class _Drawing:
    """A block on its way to a graph: which node holds the newest version of each variable."""

    def __init__(self, block, variables, highlights):
        self.block, self.variables, self.highlights = block, variables, set(highlights or ())
        legend = [(name, color) for name, color in ROLES]
        if variables:
            legend += [("parameter", PARAMETER), ("kept between runs", STATE), ("fed", FED)]
        self.graph = Graph("block %d, %s" % (block.idx, counted(len(block.ops), "operator")), legend)
        self.newest, self.versions = {}, {}

    def fill_of(self, var):
        if var is None:
            return TEMPORARY
        if var._var.is_parameter:
            return PARAMETER
        return STATE if var.persistable else FED if getattr(var, "is_data", False) else TEMPORARY

    def variable_node(self, name):
        version = self.versions.get(name, 0)
        key = "%s/%d" % (name, version)
        var = self.block._find_var_recursive(name)
        label, tip = name, name
        if var is not None and getattr(var.desc, "shape", None) is not None:
            tip = "%s %s %s" % (name, list(var.shape), str(var.dtype).split(".")[-1].lower())
        if name in self.highlights:
            return self.graph.node(key, label, "ellipse", HIGHLIGHT, tip=tip)
        return self.graph.node(key, label, "ellipse", self.fill_of(var), tip=tip)

    def read(self, name, op_key):
        if not self.variables:
            if name in self.newest:
                self.graph.edge(self.newest[name], op_key, name)
            return
        if name not in self.newest:
            self.newest[name] = self.variable_node(name).key
        self.graph.edge(self.newest[name], op_key)

    def write(self, name, op_key):
        if not self.variables:
            self.newest[name] = op_key
            return
        if name in self.newest:
            self.versions[name] = self.versions.get(name, 0) + 1
        self.newest[name] = self.variable_node(name).key
        self.graph.edge(op_key, self.newest[name])

    def operator(self, index, op):
        key = "op%d" % index
        outputs = [n for n in op.output_arg_names if n != EMPTY]
        tip = "#%d %s -> %s" % (index, op.type, ", ".join(outputs))
        marked = self.highlights & set(outputs) if not self.variables else ()
        self.graph.node(key, op.type, "box", HIGHLIGHT if marked else ROLES[_part(op)][1], tip=tip)
        for name in dict.fromkeys(op.input_arg_names):
            if name != EMPTY:
                self.read(name, key)
        for name in dict.fromkeys(outputs):
            self.write(name, key)


def program_graph(block, variables=True, highlights=None):
    """A graph of a block. A variable that is written again is drawn again, so that no edge leads back.

    Args:
        block (Block): block to draw.
        variables (bool): draws variables. If False, edges connect operators directly and show the name of the
            variable as their tip.
        highlights (list of str, optional): names of variables to mark.

    Returns:
        Graph: the graph.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch import drawing
        >>> x = fluid.data("x", [None, 4])
        >>> y = fluid.layers.relu(x)
        >>> graph = drawing.program_graph(fluid.default_main_program().global_block())
        >>> [node.lines[0] for node in graph.nodes.values()]
        ['relu', 'x', 'relu_0.tmp_0']
    """
    drawing = _Drawing(block, variables, highlights)
    for index, op in enumerate(block.ops):
        drawing.operator(index, op)
    return drawing.graph
