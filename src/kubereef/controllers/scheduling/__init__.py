"""Where Pods run: which node each gets, what becomes of nodes that fail, and of the Pods on them.

Not done here: preemption. A Pod of high priority is tried first, but nothing is removed to make room for it.
Of what Pods would merely prefer about their neighbours, nothing counts; what they require does.
"""
