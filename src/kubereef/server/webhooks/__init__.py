"""Admission webhooks: who outside the server is asked about a request, what they are told, and what their word does.

`configurations` holds who wants to be asked, `matching` about what, `reviews` is the form of question and answer,
`calling` carries them, `asking` puts it together, and `admitting` is what the verbs call.
"""
