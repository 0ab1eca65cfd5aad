"""What is asked of a model: prompts with targets. No torch here.

A task is a few lines of YAML (`spec`), from which records are read (`records`), made into prompts and
targets (`task`) and into token ids for one tokeniser (`encode`).
"""

from headatlas.task.catalogue import builtin_tasks, load_task, task_by_name
from headatlas.task.encode import Row, Rows, encode, tokens_of
from headatlas.task.relation import OTHER, Relation, builtin_relations, distinct_relations, load_relation
from headatlas.task.relation_tokens import LEAST_PAIRS, PairTokens, RelationTokens, relation_tokens
from headatlas.task.spec import TaskSpec
from headatlas.task.task import Item, Items, Task

__all__ = [
    "LEAST_PAIRS",
    "OTHER",
    "Item",
    "Items",
    "PairTokens",
    "Relation",
    "RelationTokens",
    "Row",
    "Rows",
    "Task",
    "TaskSpec",
    "builtin_relations",
    "builtin_tasks",
    "distinct_relations",
    "encode",
    "load_relation",
    "load_task",
    "relation_tokens",
    "task_by_name",
    "tokens_of",
]
