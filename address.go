package slipway

// slugTail is how much of a tenant's id stands in a slug: its random end.
const slugTail = 12

// Slug returns the last part of a deployment's address, by which the gateway tells deployments apart. Names are a tenant's
// own matter (control-plane reference 2), addresses are one space: the installation's first tenant has the plain names, and
// in those of others the end of the tenant's id follows behind a '~', which no name has. So nobody's name leads to another
// tenant's deployment, and none tells what names others have. An unknown first tenant ("") stands for every one.
func Slug(name, tenantID, firstTenantID string) string {
	if firstTenantID == "" || tenantID == firstTenantID {
		return name
	}
	return name + "~" + tenantID[max(len(tenantID)-slugTail, 0):]
}
