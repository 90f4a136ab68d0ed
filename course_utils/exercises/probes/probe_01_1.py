"""Calls the student's sigmoid, maximum and take, and torch's."""

import torch

from course_utils.exercises.derivatives import compare

from exercise_01_1 import maximum, sigmoid, take

compare("sigmoid([-2, 0, 1.5])", sigmoid, torch.sigmoid, x=[-2.0, 0.0, 1.5])
compare("sigmoid([-1000, 1000])", sigmoid, torch.sigmoid, x=[-1000.0, 1000.0])
ends = {"a": [1.0, 5.0, 2.0], "b": [3.0, 4.0, 2.0]}
compare("maximum([1, 5, 2], [3, 4, 2])", maximum, torch.maximum, **ends)
rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
index = torch.tensor([2, 0, 2, 2])
compare("take([[1, 2], [3, 4], [5, 6]], [2, 0, 2, 2])", take, lambda x, i: x[i], x=rows, i=index)
