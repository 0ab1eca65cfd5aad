"""What is asked of a model: prompts with targets. No torch here.

A task is a few lines of YAML (`spec`), from which records are read (`records`), made into prompts and
targets (`task`) and into token ids for one tokeniser (`encode`).
"""

from headatlas.task.catalogue import (
    Tasks,
    TaskSource,
    builtin_tasks,
    listed_tasks,
    load_task,
    task_by_name,
)
from headatlas.task.encode import Row, Rows, encode, tokens_of
from headatlas.task.item_list import AUTO, DEFAULT_SHARE, HeldOut, is_item_list
from headatlas.task.relation import (
    OTHER,
    Relation,
    Relations,
    RelationSource,
    builtin_relations,
    distinct_relations,
    load_relation,
)
from headatlas.task.relation_tokens import (
    LEAST_PAIRS,
    PairTokens,
    RelationTokens,
    relation_tokens,
    too_few_text,
    unmeasured_text,
)
from headatlas.task.spec import TaskSpec
from headatlas.task.task import Item, Items, Task, no_foil_words

__all__ = [
    "AUTO",
    "DEFAULT_SHARE",
    "LEAST_PAIRS",
    "OTHER",
    "HeldOut",
    "Item",
    "Items",
    "PairTokens",
    "Relation",
    "RelationSource",
    "RelationTokens",
    "Relations",
    "Row",
    "Rows",
    "Task",
    "TaskSource",
    "TaskSpec",
    "Tasks",
    "builtin_relations",
    "builtin_tasks",
    "distinct_relations",
    "encode",
    "is_item_list",
    "listed_tasks",
    "load_relation",
    "load_task",
    "no_foil_words",
    "relation_tokens",
    "task_by_name",
    "tokens_of",
    "too_few_text",
    "unmeasured_text",
]
