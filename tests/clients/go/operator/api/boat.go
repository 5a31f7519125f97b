// Package api has the kind that the operator looks after, defined in tests/clients/chart/crds/boats.yaml.
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// AddToScheme makes the kind known.
var AddToScheme func(*runtime.Scheme) error

func init() {
	builder := &scheme.Builder{GroupVersion: schema.GroupVersion{Group: "harbour.example", Version: "v1"}}
	AddToScheme = builder.Register(&Boat{}, &BoatList{}).AddToScheme
}

// Boat has a crew, for each of whom there is a Pod.
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BoatSpec   `json:"spec"`
	Status            BoatStatus `json:"status,omitempty"`
}

// BoatSpec says how a boat should be.
type BoatSpec struct {
	Crew  int32  `json:"crew"`
	Cargo string `json:"cargo,omitempty"`
}

// BoatStatus says how a boat is.
type BoatStatus struct {
	Aboard     int32              `json:"aboard,omitempty"`
	Phase      string             `json:"phase,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BoatList is a list of boats.
type BoatList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Boat `json:"items"`
}

// DeepCopy returns a copy that shares nothing.
func (b *Boat) DeepCopy() *Boat {
	copied := *b
	b.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = append([]metav1.Condition(nil), b.Status.Conditions...)
	return &copied
}

// DeepCopyObject makes a Boat an object of the API.
func (b *Boat) DeepCopyObject() runtime.Object { return b.DeepCopy() }

// DeepCopyObject makes a BoatList an object of the API.
func (l *BoatList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Boat, len(l.Items))
	for number := range l.Items {
		copied.Items[number] = *l.Items[number].DeepCopy()
	}
	return &copied
}
