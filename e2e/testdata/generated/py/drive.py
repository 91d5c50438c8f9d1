"""Drives a control service with the client that was generated from its own description."""

import os
import time
from uuid import UUID

from slipway_client import AuthenticatedClient, models
from slipway_client.api.deployments import (
    create_deployment,
    create_push_token,
    create_upload_url,
    delete_deployment,
    get_deployment,
    get_revision,
    get_revision_logs,
    interrupt_revision,
    list_deployments,
    list_revision_events,
    list_revisions,
    patch_deployment,
    redeploy_revision,
)
from slipway_client.api.templates import list_templates
from slipway_client.api.tracing_projects import list_tracing_projects

ENDED = {"DEPLOYED", "CREATE_FAILED", "BUILD_FAILED", "DEPLOY_FAILED", "SKIPPED", "INTERRUPTED"}


def connected(key: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=os.environ["SLIPWAY_URL"], token=key, prefix="", auth_header_name="X-Api-Key")


client = connected(os.environ["SLIPWAY_API_KEY"])


def ended(deployment: UUID, revision: UUID) -> models.Revision:
    while True:
        found = get_revision.sync(deployment, revision, client=client)
        assert isinstance(found, models.Revision), found
        if found.status.value in ENDED:
            return found
        time.sleep(0.2)


templates = list_templates.sync(client=client)
assert isinstance(templates, models.TemplatesList), templates
template = next(t for t in templates.resources if t.language == models.TemplateLanguage.NODE)

body = models.DeploymentCreateRequest(
    name="from-python",
    source=models.DeploymentCreateRequestSource.INTERNAL_TEMPLATE,
    source_config=models.SourceConfig(template_id=template.id, build_on_push=None),
    source_revision_config=models.SourceRevisionConfigRequest(),
    secrets=[models.Secret(name="GREETING", value="hello")],
)
made = create_deployment.sync(client=client, body=body)
assert isinstance(made, models.Deployment), made
assert made.active_revision_id is None and isinstance(made.latest_revision_id, UUID)

twice = create_deployment.sync_detailed(client=client, body=body)
assert twice.status_code == 409 and isinstance(twice.parsed, models.Error), twice
body.name = "-"
wrong = create_deployment.sync_detailed(client=client, body=body)
assert wrong.status_code == 422 and isinstance(wrong.parsed, models.HTTPValidationError), wrong
assert wrong.parsed.detail[0].loc == ["body", "name"], wrong.parsed

first = ended(made.id, made.latest_revision_id)
assert first.status == models.RevisionStatus.DEPLOYED, first.status_reason

patched = patch_deployment.sync(
    made.id,
    client=client,
    body=models.DeploymentPatchRequest(source_config=None, secrets=[made.secrets[0], models.Secret(name="MORE", value="x")]),
)
assert isinstance(patched, models.Deployment), patched
assert isinstance(patched.latest_revision_id, UUID) and patched.latest_revision_id != first.id
assert [s.name for s in patched.secrets] == ["GREETING", "MORE"]
second = ended(made.id, patched.latest_revision_id)
assert second.status == models.RevisionStatus.DEPLOYED, second.status_reason

again = redeploy_revision.sync(made.id, first.id, client=client)
assert isinstance(again, models.Deployment) and isinstance(again.latest_revision_id, UUID), again
third = ended(made.id, again.latest_revision_id)
assert third.replay_of == first.id and third.artifact_digest == first.artifact_digest, third

listed = list_revisions.sync(made.id, client=client, limit=1, status="DEPLOYED")
assert isinstance(listed, models.RevisionsList) and listed.resources[0].id == third.id, listed
events = list_revision_events.sync(made.id, first.id, client=client)
assert events is not None and not isinstance(events, (models.Error, models.HTTPValidationError))
assert events.events[0].status.value == "CREATING"
logs = get_revision_logs.sync(made.id, first.id, client=client, type_=models.GetRevisionLogsType.BUILD, limit=5)
assert isinstance(logs, models.LogsResponse) and all(line.timestamp > 0 for line in logs.logs), logs
slot = create_upload_url.sync_detailed(made.id, client=client)
assert slot.status_code == 200, slot
token = create_push_token.sync_detailed(made.id, client=client)
assert token.status_code == 400 and isinstance(token.parsed, models.Error), token
projects = list_tracing_projects.sync(client=client, name=made.name)
assert isinstance(projects, models.TracingProjectsList) and projects.resources[0].deployment_id == made.id, projects
over = interrupt_revision.sync_detailed(made.id, first.id, client=client)
assert over.status_code == 400, over

assert delete_deployment.sync_detailed(made.id, client=client, delete_tracing_project=True).status_code == 204
assert get_deployment.sync_detailed(made.id, client=client).status_code == 404
assert list_deployments.sync_detailed(client=connected("slw_nobody")).status_code == 401
