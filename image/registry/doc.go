// Package registry is the installation's own container registry: the push and pull half of the OCI distribution protocol
// over a directory, for repositories registry/TENANT/NAME (control-plane reference 5, "Image"). What it answered 201 to is
// on the disk; an upload that was cut goes on where it stopped, also after a restart. Nothing is ever deleted but uploads
// that were given up: a revision may refer to any image.
//
// Each tenant has a directory of its own, and no request reaches into another's:
//
//	TENANT/blobs/HEX                          layers and configurations by their SHA-256, shared by the tenant's repositories
//	TENANT/uploads/ID                         what has arrived of a blob
//	TENANT/repositories/NAME/manifests/HEX    NAME with "+" for "/"
//	TENANT/repositories/NAME/tags/TAG         the digest that the tag stands for
package registry
