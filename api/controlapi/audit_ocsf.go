package controlapi

import (
	"context"
	"strings"
	"time"

	"github.com/slipway-dev/slipway"
)

// OCSFActivity is an audit entry as an OCSF 1.3 event of class API Activity (control-plane reference 1).
type OCSFActivity struct {
	ActivityID   int            `json:"activity_id" required:"true" doc:"1 create, 2 read, 3 update, 4 delete, 99 other"`
	ActivityName string         `json:"activity_name" required:"true" doc:"the activity in words"`
	CategoryUID  int            `json:"category_uid" required:"true" doc:"6"`
	CategoryName string         `json:"category_name" required:"true" doc:"Application Activity"`
	ClassUID     int            `json:"class_uid" required:"true" doc:"6003"`
	ClassName    string         `json:"class_name" required:"true" doc:"API Activity"`
	TypeUID      int            `json:"type_uid" required:"true" doc:"class_uid * 100 + activity_id"`
	SeverityID   int            `json:"severity_id" required:"true" doc:"1 informational, 2 low for what was refused"`
	StatusID     int            `json:"status_id" required:"true" doc:"1 success, 2 failure"`
	Status       string         `json:"status" required:"true" doc:"the status in words"`
	Time         int64          `json:"time" required:"true" doc:"when, in milliseconds since 1970"`
	Metadata     OCSFMetadata   `json:"metadata" required:"true" doc:"about the event"`
	Actor        OCSFActor      `json:"actor" required:"true" doc:"who"`
	API          OCSFCall       `json:"api" required:"true" doc:"what"`
	SrcEndpoint  OCSFEndpoint   `json:"src_endpoint" required:"true" doc:"from where"`
	Resources    []OCSFResource `json:"resources" required:"true" nullable:"false" doc:"to what"`
	Unmapped     OCSFUnmapped   `json:"unmapped" required:"true" doc:"what the schema has no place for"`
}

// OCSFMetadata is about the event itself.
type OCSFMetadata struct {
	Version        string      `json:"version" required:"true" doc:"of the schema"`
	UID            string      `json:"uid" required:"true" doc:"id of the entry"`
	CorrelationUID *string     `json:"correlation_uid" required:"true" doc:"the X-Request-Id of the answer"`
	TenantUID      *string     `json:"tenant_uid" required:"true" doc:"the tenant it happened in"`
	Product        OCSFProduct `json:"product" required:"true" doc:"what recorded it"`
}

// OCSFProduct is what recorded an event.
type OCSFProduct struct {
	Name       string `json:"name" required:"true" doc:"slipway"`
	VendorName string `json:"vendor_name" required:"true" doc:"slipway"`
	Version    string `json:"version" required:"true" doc:"of slipway"`
}

// OCSFActor is who did it.
type OCSFActor struct {
	User OCSFUser `json:"user" required:"true" doc:"the principal"`
}

// OCSFUser is a principal.
type OCSFUser struct {
	UID  string `json:"uid" required:"true" doc:"the principal"`
	Type string `json:"type" required:"true" doc:"User or System"`
}

// OCSFCall is what was called.
type OCSFCall struct {
	Operation string      `json:"operation" required:"true" doc:"e.g. create_deployment"`
	Request   OCSFRequest `json:"request" required:"true" doc:"the request"`
}

// OCSFRequest names a request.
type OCSFRequest struct {
	UID string `json:"uid" required:"true" doc:"the X-Request-Id of the answer"`
}

// OCSFEndpoint is where a request came from.
type OCSFEndpoint struct {
	IP *string `json:"ip" required:"true" doc:"address of the client"`
}

// OCSFResource is what was changed.
type OCSFResource struct {
	UID  string `json:"uid" required:"true" doc:"its id"`
	Type string `json:"type" required:"true" doc:"e.g. deployment"`
}

// OCSFUnmapped is what the schema has no place for.
type OCSFUnmapped struct {
	Detail  map[string]any `json:"detail" required:"true" nullable:"false" doc:"what else tells what happened"`
	Changes []AuditChange  `json:"changes" required:"true" nullable:"false" doc:"the fields that changed, before and after"`
}

// OCSFList is one page of events.
type OCSFList struct {
	Items  []OCSFActivity `json:"items" required:"true" nullable:"false" doc:"the events of this page, newest first"`
	Cursor *string        `json:"cursor" required:"true" doc:"give it to read on; null at the end"`
}

type ocsfInput struct {
	StartTime time.Time `query:"start_time" doc:"not before this time (RFC 3339)"`
	EndTime   time.Time `query:"end_time" doc:"before this time (RFC 3339)"`
	Operation string    `query:"operation" maxLength:"200" doc:"exact operation, e.g. create_deployment"`
	Limit     int       `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"how many events at most"`
	Cursor    string    `query:"cursor" maxLength:"200" doc:"the cursor of the page before"`
}

const (
	ocsfVersion     = "1.3.0"
	ocsfClass       = 6003
	ocsfCategory    = 6
	ocsfOther       = 99
	ocsfInformation = 1
	ocsfLow         = 2
)

func (a *api) listOCSF(ctx context.Context, in *ocsfInput) (*struct{ Body OCSFList }, error) {
	q := slipway.AuditQuery{Operation: in.Operation, From: in.StartTime, To: in.EndTime}
	found, next, err := a.auditPage(ctx, q, in.Cursor, in.Limit)
	if err != nil {
		return nil, a.problem(err)
	}
	list := OCSFList{Items: []OCSFActivity{}, Cursor: next}
	for _, e := range found {
		list.Items = append(list.Items, a.ocsf(e))
	}
	return &struct{ Body OCSFList }{list}, nil
}

func (a *api) ocsf(e slipway.AuditEntry) OCSFActivity {
	id, name := activity(e.Operation)
	entry := auditEntry(e)
	out := OCSFActivity{
		ActivityID: id, ActivityName: name, CategoryUID: ocsfCategory, CategoryName: "Application Activity", ClassUID: ocsfClass,
		ClassName: "API Activity", TypeUID: ocsfClass*100 + id, SeverityID: ocsfInformation, StatusID: 1, Status: "Success", Time: e.At.UnixMilli(),
		Metadata: OCSFMetadata{
			Version: ocsfVersion, UID: e.ID, CorrelationUID: entry.RequestID, TenantUID: entry.TenantID,
			Product: OCSFProduct{Name: "slipway", VendorName: "slipway", Version: a.cfg.Version},
		},
		Actor: OCSFActor{User: OCSFUser{UID: e.Principal, Type: "User"}}, API: OCSFCall{Operation: e.Operation, Request: OCSFRequest{UID: e.RequestID}},
		SrcEndpoint: OCSFEndpoint{IP: entry.Address}, Resources: []OCSFResource{}, Unmapped: OCSFUnmapped{Detail: entry.Detail, Changes: entry.Changes},
	}
	if !strings.Contains(e.Principal, ":") {
		out.Actor.User.Type = "System"
	}
	if e.Subject != "" {
		_, noun, _ := strings.Cut(e.Operation, "_")
		out.Resources = append(out.Resources, OCSFResource{UID: e.Subject, Type: noun})
	}
	if e.Outcome == slipway.OutcomeRefused {
		out.StatusID, out.Status, out.SeverityID = 2, "Failure", ocsfLow
	}
	return out
}

// activity is what an operation does, by the verb it begins with.
func activity(operation string) (id int, name string) {
	verb, _, _ := strings.Cut(operation, "_")
	switch verb {
	case "create", "describe":
		return 1, "Create"
	case "get", "list", "read", "export":
		return 2, "Read"
	case "update", "patch", "rotate", "switch", "redeploy", "interrupt", "restore":
		return 3, "Update"
	case "delete", "revoke", "purge":
		return 4, "Delete"
	}
	return ocsfOther, "Other"
}
