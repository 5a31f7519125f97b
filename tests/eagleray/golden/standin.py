"""Dashboards that know every job and application, as those did that the reference was recorded with."""

from tests.eagleray.dashboard.scripted import Ledger, ScriptedHead


class RunningEverywhere(dict[str, ScriptedHead]):
    """Heads by host: wherever one is asked for there is one, whatever job it is asked about is running, and so is
    every Serve application that it is given."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def __contains__(self, host):
        return True

    def __missing__(self, host):
        self[host] = head = _Head(self._clock, Ledger(), session=f"session_of_{host}")
        return head


class _Head(ScriptedHead):
    def handle(self, method, path, headers, body):
        base, _, job_id = path.partition("/api/jobs/")
        if method == "GET" and not base and job_id and job_id not in self.jobs:
            self.submit(job_id)
        return super().handle(method, path, headers, body)

    def _put_serve(self, configuration):
        answer = super()._put_serve(configuration)
        for app in configuration.get("applications", ()):
            healthy = {deployment["name"]: "HEALTHY" for deployment in app.get("deployments", ())}
            self.set_application(app["name"], "RUNNING", **healthy)
            self.applications[app["name"]]["deployed_app_config"] = app
        return answer
